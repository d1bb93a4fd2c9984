"""What a run found and did: as data, as one versioned document, and as renderings of it."""
