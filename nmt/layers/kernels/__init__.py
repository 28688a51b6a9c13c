"""Fast implementations of what the model computes most often."""
