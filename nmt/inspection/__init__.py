"""A page in which attention can be explored: one file, no network, no server."""
