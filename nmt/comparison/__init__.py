"""Training several configs and evaluating them in the same way."""
