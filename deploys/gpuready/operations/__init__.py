"""Everything that acts on a node: transport, steps, lock and operation."""
