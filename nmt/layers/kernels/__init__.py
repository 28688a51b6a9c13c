"""Fast implementations of the most frequent computations of a model."""
