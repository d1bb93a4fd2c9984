"""What a node is: the probe, its parser and the model. Pure; nothing here opens a connection."""
