"""A verb is a folder: what happens on the nodes, and what is made of the answers."""
