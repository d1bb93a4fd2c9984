"""Everything that acts on a node: transport, steps, lock and operation. Only this and the fleet use pyinfra."""
