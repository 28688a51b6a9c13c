"""Write a chapter that follows one sentence through a trained model, in numbers.

Usage: python scripts/write_walkthrough.py [--model runs/demo] [--sentence TEXT] [--step N] [--output FILE.md]

The model chooses the chapter: a recurrent one, that of `make demo`, the chapter that ends at its context vector; a
Transformer the one on self-attention, which says how to train it. Every number is computed by the equations of
`nmt/models/reference.py`, whose lines stand beside it, and compared with what the model itself computes.
"""

import argparse
from pathlib import Path

from walkthrough import context_vector, transformer

from nmt.config.outputs import check_files
from nmt.models.transformer.decoder import TransformerDecoder
from nmt.models.transformer.encoder import SelfAttentionEncoder
from nmt.system.errors import NmtError
from nmt.system.files import write_text
from nmt.translation.loading import LoadSettings, open_translator
from nmt.translation.translator import Translator

SENTENCE = "The old woman reads a book."
FOLDER = Path(__file__).parents[1] / "docs/learn"
"""Where the chapters are."""


def main() -> None:
    """Write the chapter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("runs/demo"), help="run directory")
    parser.add_argument("--sentence", default=SENTENCE, help="what is translated")
    parser.add_argument("--step", type=int, default=4, help="which word of the translation, from 1")
    parser.add_argument("--output", type=Path, help="file to write; without it the chapter in docs/learn")
    parser.add_argument("--overwrite", action="store_true", help="replace an output that is not empty")
    arguments = parser.parse_args()
    try:
        check_files({"--output": arguments.output}, (), overwrite=arguments.overwrite)
        _, translator = open_translator([arguments.model], LoadSettings("cpu"))
        file, text = write_chapter(translator, arguments.sentence, arguments.step)
        write_text(arguments.output or FOLDER / file, text)
    except NmtError as error:
        parser.exit(1, f"error: {error}\n")


def write_chapter(translator: Translator, sentence: str, step: int) -> tuple[str, str]:
    """The chapter about a model's kind.

    Args:
        translator: The model.
        sentence: What is translated.
        step: Which word of the translation, from 1.

    Returns:
        The name of its file, and the chapter as Markdown.

    Raises:
        ConfigError: No chapter is about such a model, or there is no such step.
    """
    parts = translator.model.encoder, translator.model.decoder
    attentive = any(isinstance(part, SelfAttentionEncoder | TransformerDecoder) for part in parts)
    chapter = transformer if attentive else context_vector
    return chapter.FILE, chapter.write_chapter(translator, sentence, step)


if __name__ == "__main__":
    main()
