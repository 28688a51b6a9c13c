"""The commands of scripts/benchmark.py, one module each, and their shared code."""
