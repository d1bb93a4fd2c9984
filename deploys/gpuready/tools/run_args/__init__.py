"""How containers and jobs are started so that they get what a node has."""
