"""Whether an image runs on a driver and a GPU: what images hold, and what that means."""
