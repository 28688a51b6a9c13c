"""Exported folders as models: other programs compute them, and everything around them is the same."""
