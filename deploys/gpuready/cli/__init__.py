"""The command line: one module for each verb, and what they share."""
