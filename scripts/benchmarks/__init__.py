"""The commands of scripts/benchmark.py, one module each, and what they share."""
