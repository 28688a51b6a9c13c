"""Training several configs, or one with and without synthetic pairs, and evaluating them in the same way."""
