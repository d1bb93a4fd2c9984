"""What components, checks and their callers agree on: components, comparison, checks, permission, rollout."""
