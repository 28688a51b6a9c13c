"""nmt: recurrent neural machine translation with attention, from raw text to BLEU."""

__version__ = "0.1.0"
