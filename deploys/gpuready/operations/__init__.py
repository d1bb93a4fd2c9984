"""What acts on a node: the transport, the steps, the lock, the one operation. All but the engine that needs pyinfra."""
