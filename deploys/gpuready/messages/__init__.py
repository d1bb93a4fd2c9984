"""Error messages as people paste them: which one it is, its cause, its fix, and the checks that judge it on a node."""
