"""The state of a node: the probe, its parser and the model. Pure; nothing here opens a connection."""
