"""Limits shared by several parts of the program; this module imports nothing."""

MAX_BEAM_SIZE = 1000
MAX_DECODE_BATCH = 100_000
"""Sentences translated at once."""
MAX_UNITS = 16_384
"""Units of a layer, an embedding or a head."""

KIB, MIB, GIB = 2**10, 2**20, 2**30
MAX_CONFIG = 256 * KIB
"""Bytes of a config file; one with every key has about 3 KiB."""
MAX_JSON = MIB
"""Bytes of a JSON file other than vocabularies and tokenizers."""
MAX_LINE = MIB
"""Bytes of a line of text, without its line feed; no more of a longer line is ever held in memory."""
OVERLONG = f"longer than {MAX_LINE // MIB} MB"
"""How messages describe a longer line."""
MAX_EXAMPLE = 4 * MIB
"""Bytes of an example with its references."""
MAX_TEXT_FILE = 256 * MIB
"""Bytes of a vocabulary, a tokenizer file, the fingerprints of training sources, or the log of a run."""
MAX_PICTURE = 16 * MIB
"""Bytes of a picture of a run or of data."""
MAX_HEADER = 16 * MIB
"""Bytes of the header of a weights file."""
MAX_EXAMPLES = 4 * GIB
"""Bytes of the raw sentences of a validation or test split."""
MAX_COUNT = 10**15
"""Updates, tokens and the like of one run."""
MAX_DIGITS = 30
"""Digits of a number in a config or a JSON file."""

MAX_KERNELS = 128
"""Kernels for shapes of products that oneDNN and its wrapper in torch keep in memory, unless the environment says else.

With torch's default of 1,024, training on 20,000 pairs takes 1,245 MiB instead of 959, and more the longer it goes on;
with 32 it takes 678, but an epoch 5% and 12% longer in two measurements.
"""
