"""What a node should be: the models, the inventory that fills them, and errors that name file and line.

Nothing here imports pyinfra, so that a wrong inventory is refused before anything is connected.
"""
