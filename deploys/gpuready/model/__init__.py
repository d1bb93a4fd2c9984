"""What a node should be (NodeSpec) and what it is (NodeState), and the parser of the probe's answer.

Both are composed of the spec.py and state.py of the components.
"""
