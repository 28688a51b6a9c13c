"""What other programs need in order to run a model that was trained here; each format is one module."""
