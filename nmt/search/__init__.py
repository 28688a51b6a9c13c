"""From source ids to hypotheses."""
