"""The command line: what verbs share."""
