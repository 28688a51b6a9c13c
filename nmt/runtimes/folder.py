"""Folders that `nmt export` wrote for other programs, read again, and the searchers that let these programs compute.

A folder may be untrusted, as a model directory may: config and text are read with the same checks, and no file outside
it is read. Its graph is a program: a program of ONNX's operators can take as much memory and time as it likes.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt.models.storage import RUNTIMES, ModelFolder, read_export_format, read_folder
from nmt.system.errors import CheckpointError, ConfigError, DataError, is_out_of_memory, shorten
from nmt.system.files import check_file, read_json
from nmt.system.limits import MAX_TEXT_FILE
from nmt.system.messages import Parameter

if TYPE_CHECKING:
    import torch

    from nmt.config import DecodeSection
    from nmt.search.searcher import Searcher
    from nmt.text.vocabulary import Vocabulary

METADATA = "metadata.json"
"""Name of the file of an exported folder that holds what `model.json` holds of a model."""


class Runtime(NamedTuple):
    """A program that computes exported folders.

    Attributes:
        program: Its name.
        package: Its Python package, by the name under which it is installed and imported.
        files: The files that have the graph and the weights; the last one tells models apart.
        module: The module whose `open_searcher` lets it search.
    """

    program: str
    package: str
    files: tuple[str, ...]
    module: str


PROGRAMS: Mapping[str, Runtime] = {
    "ctranslate2": Runtime("CTranslate2", "ctranslate2", ("model.bin",), "nmt.runtimes.ctranslate2_searcher"),
    "onnx": Runtime("ONNX Runtime", "onnxruntime", ("encoder.onnx", "decoder.onnx"), "nmt.runtimes.onnx_searcher"),
}
"""The programs by the format of `nmt export`."""
assert {form: runtime.files[-1] for form, runtime in PROGRAMS.items()} == RUNTIMES


@dataclass(frozen=True)
class ExportedModel(ModelFolder):
    """An exported folder that has been read, without its graph and weights.

    Attributes:
        runtime: The program that computes it.
    """

    runtime: Runtime

    @property
    def files(self) -> list[Path]:
        """The files that have the graph and the weights."""
        return [self.path / name for name in self.runtime.files]

    @property
    def weights(self) -> Path:
        """See `ModelFolder.weights`."""
        return self.files[-1]

    def __str__(self) -> str:
        return f"{self.path}, an export that {self.runtime.program} computes"

    def fingerprint(self) -> str:
        """See `Searcher.fingerprint`."""
        digest = hashlib.sha256()
        for path in self.files:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    def check_positions(self, targets: Iterable[Sequence[int]], positions: int | None) -> None:
        """Check that given translations are not too long.

        Args:
            targets: Their ids without EOS.
            positions: Tokens with EOS of the longest translation; None: any.

        Raises:
            ConfigError: One is longer.
        """
        for ids in targets:
            if positions is not None and len(ids) >= positions:
                tokens = [self.tgt_vocabulary.tokens[id_] for id_ in ids]
                text = shorten(self.load_processor().tgt_tokenizer.detokenize(tokens))
                raise ConfigError(
                    f"{text}: has {len(ids) + 1:,} tokens with the end, and the export at most {positions:,}; shorten "
                    "the text, or give the model that the export was made from"
                )

    def refuse(self, feature: str) -> ConfigError:
        """The error that the program lacks a feature, which is a clause such as `it draws no samples`."""
        return ConfigError(f"{self}: {feature}; give the model that it was made from")

    def open_searcher(self, options: DecodeSection, device: torch.device) -> Searcher:
        """Load graph and weights, with as many threads as torch has.

        Raises:
            CheckpointError: They are damaged, or do not fit the vocabularies.
            ConfigError: The program has no such search setting or device.
        """
        if options.precision != "float32":
            raise ConfigError(
                "{path}: it computes in the number format of its export; leave {precision} out",
                path=self.path,
                precision=Parameter("precision", options.precision),
            )
        searcher: Searcher = import_module(self.runtime.module).open_searcher(self, options, device)
        return searcher


def find_runtime(directory: Path) -> Runtime | None:
    """The program that computes a folder; None if it is no exported folder of such a program."""
    return PROGRAMS.get(read_export_format(directory) or "")


def load_export(directory: Path, allowed_classes: Collection[str] = ()) -> ExportedModel:
    """Read an exported folder, which may be untrusted, but for its graph and weights.

    Args:
        directory: A folder that `find_runtime` knows.
        allowed_classes: As for `load_model`.

    Raises:
        CheckpointError: It is incomplete, damaged or of another format, or the program is not installed.
        ConfigError: Its config is wrong.
    """
    runtime = find_runtime(directory)
    assert runtime is not None
    if importlib.util.find_spec(runtime.package) is None:
        raise CheckpointError(
            f"{directory}: is computed by {runtime.program}, which is not installed: pip install {runtime.package}"
        )
    if not (directory / METADATA).exists():
        raise CheckpointError(
            f"{directory}: has no {METADATA}: an earlier nmt exported it for other programs only; export again"
        )
    try:
        for path in directory.iterdir():  # the program reads more files than those of the graph
            check_file(path, directory)
        for name in runtime.files:
            if not (directory / name).is_file():
                raise CheckpointError(f"{directory / name}: missing; the export is incomplete")
        folder = read_folder(directory, directory / METADATA, directory / runtime.files[-1], allowed_classes)
    except OSError as error:
        raise CheckpointError(
            f"{error.filename}: cannot be read ({error.strerror}); the export is incomplete"
        ) from None
    except DataError as error:
        raise CheckpointError(*error.problems) from None
    return ExportedModel(
        directory, folder.config, folder.src_vocabulary, folder.tgt_vocabulary, folder.metadata, runtime
    )


def check_tokens(path: Path, tokens: object, vocabulary: Vocabulary) -> None:
    """Check that a program has the words of a side, in the same order.

    Args:
        path: The file that has its words.
        tokens: These words, as they were read.
        vocabulary: The words in the text of the export.

    Raises:
        CheckpointError: They are others.
    """
    if tokens != vocabulary.tokens:
        raise CheckpointError(f"{path}: has other words than the text of the export; export the model again")


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON file that another program reads too.

    Raises:
        CheckpointError: It is not an object.
        DataError: The file is missing, not JSON, too large, or not a regular file in its folder.
    """
    value = read_json(path, MAX_TEXT_FILE)
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: is not a JSON object; export the model again")
    return value


@contextmanager
def reading(model: ExportedModel, path: Path) -> Iterator[None]:
    """Turn the errors of a program that loads a file or folder of a model into one that names it.

    Raises:
        CheckpointError: The program cannot load it.
    """
    try:
        yield
    except CheckpointError:
        raise
    except DataError as error:  # which names the file
        raise CheckpointError(f"{error}; export the model again") from None
    except Exception as error:  # programs have exceptions of their own
        raise _name(error, f"{path}: {model.runtime.program} cannot load it", "export the model again") from None


@contextmanager
def computing(model: ExportedModel, path: Path) -> Iterator[None]:
    """Turn the errors of a program that computes a file or folder of a model into one that names it.

    Raises:
        CheckpointError: The program cannot compute it.
    """
    try:
        yield
    except Exception as error:
        advice = "shorten the text, or export the model again"
        raise _name(error, f"{path}: {model.runtime.program} cannot compute it", advice) from None


def _name(error: Exception, problem: str, advice: str) -> Exception:
    """Another program's error as one of ours, with its message on one line; that memory ran out stays as it is."""
    if is_out_of_memory(error):
        return error
    reason = shorten(" ".join(str(error).split()))
    return CheckpointError(f"{problem} ({reason}); {advice}")
