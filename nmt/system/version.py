"""The version of nmt."""

__version__ = "0.1.0"
