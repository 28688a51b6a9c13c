"""Attention: one file per score; masking, normalisation and the context are implemented once."""
