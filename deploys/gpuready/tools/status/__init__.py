"""The state of each node, from the record that the last apply left there. Pure: a probe in, a status out."""
