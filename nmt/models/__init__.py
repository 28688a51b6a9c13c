"""Encoder, attention, decoder, and `build_model`, which turns a config into modules."""
