"""Experiments, their results, and the tables made of them."""
