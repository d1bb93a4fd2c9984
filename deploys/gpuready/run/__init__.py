"""A run from start to end: a fleet of hosts, and what plan, apply and verify do with it."""
