"""The package that Argos Translate and LibreTranslate install (https://github.com/argosopentech/argos-translate)."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from nmt.config import Config
from nmt.exporting import ctranslate2
from nmt.exporting.formats import Obstacle, describe_text
from nmt.models.card import CARD
from nmt.models.storage import SavedModel
from nmt.system.files import write_json, write_text
from nmt.system.version import __version__
from nmt.text.languages import language_name

NAME = "argos"
PACKAGES = ctranslate2.PACKAGES
QUANTIZATIONS = ("int8", "float16", "none")
SUFFIX = ".argosmodel"
REMARKS = (
    "Argos searches with a beam of 4 and a length penalty of 0.2, whatever the config says.",
    "Argos writes a space for each _ in a translation.",
)


def find_obstacles(config: Config) -> Iterator[Obstacle]:
    """Find what Argos Translate 1.11 cannot hold: it has one SentencePiece model for both languages.

    Settings of the search are no obstacles, as it has its own (`argostranslate/translate.py`).
    """
    yield from (obstacle for obstacle in ctranslate2.find_obstacles(config) if obstacle.key.startswith("model."))
    if config.text.tokenizer != "subword":
        yield Obstacle(
            "text.tokenizer", f"Argos splits text by SentencePiece, not {config.text.tokenizer}; put subword"
        )
    elif not config.text.subword.joint:
        yield Obstacle("text.subword.joint", "Argos has one SentencePiece model for both languages; put true")


def write(model: SavedModel, path: Path, quantization: str) -> Iterator[str]:
    """Write a zip archive with one folder in it; see `Format`."""
    source, target = model.config.data.languages
    code = f"translate-{source}_{target}"
    splitter = (
        f"Argos splits text into sentences by a model that it downloads at first use; for a machine without network"
        f" put MiniSBD's {source}.onnx into the folder {code}/minisbd of the archive."
    )
    remarks = [*describe_text(model, "Argos"), *REMARKS, splitter]
    metadata = {
        **{"package_version": __version__, "argos_version": "1.9.0", "type": "translate", "code": code, "links": []},
        **{"from_code": source, "from_name": language_name(source)},
        **{"to_code": target, "to_name": language_name(target)},
    }
    card = model.path / CARD
    with TemporaryDirectory(dir=path.parent, prefix=f"{path.name}-") as temporary:
        package = Path(temporary, code)
        (package / "model").mkdir(parents=True)
        ctranslate2.save(model, package / "model", quantization)
        (package / "sentencepiece.model").write_bytes((model.text / "src.subwords.model").read_bytes())
        write_json(package / "metadata.json", metadata)
        limits = "\n".join(f"- {remark}" for remark in remarks)
        write_text(package / "README.md", (card.read_text(encoding="utf-8") if card.exists() else "") + f"\n{limits}\n")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(package.rglob("*")):
                archive.write(file, file.relative_to(temporary))
    yield from remarks
