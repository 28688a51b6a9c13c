"""Evaluation: scores, losses and alignments."""
