"""Encoder, attention, decoder, and the one place where a config becomes modules."""
