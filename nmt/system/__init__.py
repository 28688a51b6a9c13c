"""Files, locks, signals and the terminal: knows nothing of translation."""
