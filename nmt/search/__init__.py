"""From source ids to hypotheses, and from raw text to raw text."""
