"""What the model computes most often, written for speed; each by the name of what it computes."""
