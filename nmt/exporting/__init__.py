"""The files that other programs need to run a model that was trained here; each format is one module."""
