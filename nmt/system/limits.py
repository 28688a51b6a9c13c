"""Limits of files and lines that several packages share; this module imports nothing."""

KIB = 2**10
MIB = 2**20
GIB = 2**30
MAX_CONFIG = 256 * KIB
"""Bytes of a config file; one with every key has about 3 KiB."""
MAX_JSON = MIB
"""Bytes of a JSON file other than vocabularies and tokenizers."""
MAX_LINE = MIB
"""Bytes of a line of text, without its line feed; no more of a longer line is ever held in memory."""
OVERLONG = f"longer than {MAX_LINE // MIB} MB"
"""How messages describe a longer line."""
MAX_TEXT_FILE = 256 * MIB
"""Bytes of a vocabulary, a tokenizer file, the fingerprints of training sources, or the log of a run."""
MAX_EXAMPLES = 4 * GIB
"""Bytes of a file of raw sentences."""
MAX_DIGITS = 30
"""Digits of a number in a config or a JSON file."""
