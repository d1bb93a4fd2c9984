"""The expected state of a node: the models, and errors with file and line.

Nothing here imports pyinfra: a wrong inventory is refused before gpuready connects to any host.
"""
