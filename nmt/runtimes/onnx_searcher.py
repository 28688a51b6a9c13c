"""The graphs of an exported folder as a `Stepper`, computed by ONNX Runtime (https://onnxruntime.ai) on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.layers.layout import Layout, join_padded
from nmt.runtimes.folder import ExportedModel, check_tokens, computing, read_object, reading
from nmt.search.hypothesis import Hypothesis
from nmt.search.searcher import Ids, StepSearcher
from nmt.system.errors import CheckpointError
from nmt.text.vocabulary import BOS_ID, EOS_ID

if TYPE_CHECKING:
    from nmt.config import DecodeSection

SETTINGS = "model.json"
"""The file that has the vocabularies and limits, for programs that are not `nmt`."""
NEXT = "next_"
"""Beginning of the name of a state where it leaves a step."""
OUTSIDE = b"location"
"""The key of weights in another file; graphs that nmt writes have no such word."""
QUIET = 4
"""The level of the log that has only fatal errors; others are exceptions."""

Arrays = Mapping[str, NDArray[Any]]


class Graph(NamedTuple):
    """A graph that ONNX Runtime has loaded.

    Attributes:
        model: The folder.
        path: Its file.
        session: The `onnxruntime.InferenceSession`.
    """

    model: ExportedModel
    path: Path
    session: Any

    @property
    def outputs(self) -> list[str]:
        """The names of its outputs."""
        return [port.name for port in self.session.get_outputs()]

    def run(self, inputs: Arrays) -> dict[str, Any]:
        """Its outputs by their names.

        Raises:
            CheckpointError: ONNX Runtime cannot compute them.
        """
        names = self.outputs
        with computing(self.model, self.path):
            return dict(zip(names, self.session.run(names, inputs), strict=True))


class OnnxState(NamedTuple):
    """The state of a search.

    Attributes:
        memory: What belongs to sentences, by name, [B, ...].
        memory_rows: The same for each hypothesis, [R, ...].
        sentences: The sentence of each hypothesis, [R].
        history: What belongs to hypotheses, by name, [R, ...].
    """

    memory: Arrays
    memory_rows: Arrays
    sentences: NDArray[np.int64]
    history: Arrays


class OnnxStepper:
    """The graphs of a folder.

    Args:
        model: The folder.

    Raises:
        CheckpointError: A graph is damaged or reads another file, or the graphs do not fit the vocabularies.
    """

    def __init__(self, model: ExportedModel) -> None:
        _check_vocabularies(model)
        self.encoder, self.decoder = (_open_graph(model, path) for path in model.files)
        self._check(model)

    def _check(self, model: ExportedModel) -> None:
        """Compute an empty sentence."""
        with reading(model, self.encoder.path):
            state = self.start(torch.tensor([[EOS_ID]]), torch.tensor([1]))
        with reading(model, self.decoder.path):
            log_probs, alignment, _ = self.step(torch.tensor([BOS_ID]), state)
        expected = (1, len(model.tgt_vocabulary))
        if log_probs.shape != expected or alignment.ndim != 3 or alignment.size(2) != 1:
            raise CheckpointError(
                f"{model.path}: its graphs do not match config and vocabulary: a step gives log-probabilities "
                f"{list(log_probs.shape)} and attention {list(alignment.shape)}; export the model again"
            )

    def start(self, src: Tensor, src_lengths: Tensor) -> OnnxState:
        """Encode the sources; see `Stepper.start`."""
        outputs = self.encoder.run({"src": src.numpy(), "lengths": src_lengths.numpy()})
        changing = {name.removeprefix(NEXT) for name in self.decoder.outputs}
        memory = {name: value for name, value in outputs.items() if name not in changing}
        history = {name: value for name, value in outputs.items() if name in changing}
        return OnnxState(memory, memory, np.arange(len(src)), history)

    def step(self, words: Tensor, state: OnnxState) -> tuple[Tensor, Tensor, OnnxState]:
        """One step of the decoder; see `Stepper.step`."""
        outputs = self.decoder.run({"words": words.numpy(), **state.memory_rows, **state.history})
        log_probs = torch.from_numpy(outputs.pop("log_probs"))
        alignment = torch.from_numpy(outputs.pop("alignment"))
        history = {name.removeprefix(NEXT): value for name, value in outputs.items()}
        return log_probs, alignment, state._replace(history=history)

    def select(self, state: OnnxState, rows: Tensor, layout: Layout, sentences: Tensor | None = None) -> OnnxState:
        """Rows of the state; see `Stepper.select`."""
        kept = rows.numpy()
        history = state.history
        if not _is_all(kept, len(state.sentences)):
            history = {name: value[kept] for name, value in history.items()}
        of_rows = layout.sentences(rows.device).numpy()
        memory = state.memory
        if sentences is not None:
            remaining = sentences.numpy()
            memory = {name: value[remaining] for name, value in memory.items()}
        elif np.array_equal(of_rows, state.sentences):
            return state._replace(history=history)
        return OnnxState(memory, _by_row(memory, of_rows, layout), of_rows, history)

    def join(self, states: Sequence[OnnxState], layout: Layout) -> OnnxState:
        """See `Stepper.join`."""
        memory = _join([state.memory for state in states])
        history = _join([state.history for state in states])
        of_rows = layout.sentences(torch.device("cpu")).numpy()
        return OnnxState(memory, _by_row(memory, of_rows, layout), of_rows, history)


class OnnxSearcher(StepSearcher):
    """A search over the steps of a folder's graphs.

    Args:
        model: The folder.
        options: Search settings.
        stepper: Its graphs; None loads them.
    """

    def __init__(self, model: ExportedModel, options: DecodeSection, stepper: OnnxStepper | None = None) -> None:
        super().__init__(options)
        self.model = model
        self.stepper = stepper or OnnxStepper(model)
        self.max_source_length = getattr(model.config.model.encoder, "learned_positions", None)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled without the graphs, which are loaded again."""
        return type(self), (self.model, self.options)

    def with_options(self, options: DecodeSection) -> Self:
        """See `Searcher.with_options`."""
        return type(self)(self.model, options, self.stepper)

    def score(
        self, sources: Sequence[Ids], targets: Sequence[Ids], *, with_alignment: bool = False
    ) -> list[list[Hypothesis]]:
        """See `Searcher.score`.

        Raises:
            ConfigError: A translation is too long.
        """
        self.model.check_positions(targets, self.max_target_length)
        return super().score(sources, targets, with_alignment=with_alignment)

    @property
    def device(self) -> torch.device:
        """See `Searcher.device`."""
        return torch.device("cpu")

    @property
    def max_target_length(self) -> int | None:
        """See `Searcher.max_target_length`."""
        limit: int | None = getattr(self.model.config.model.decoder, "learned_positions", None)
        return limit

    def fingerprint(self) -> str:
        """See `Searcher.fingerprint`."""
        return self.model.fingerprint()

    def _stepper(self, num_words: int) -> OnnxStepper:
        return self.stepper


def open_searcher(model: ExportedModel, options: DecodeSection, device: torch.device) -> OnnxSearcher:
    """See `ExportedModel.open_searcher`; the device is the CPU, whichever others there are."""
    return OnnxSearcher(model, options)


def _open_graph(model: ExportedModel, path: Path) -> Graph:
    """Load a graph, in which all weights must be."""
    import onnxruntime

    with reading(model, path):
        content = path.read_bytes()
        if OUTSIDE in content:
            raise CheckpointError(f"{path}: has weights in another file, which is not read; export the model again")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.inter_op_num_threads = 1
        options.log_severity_level = QUIET
        return Graph(model, path, onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"]))


def _check_vocabularies(model: ExportedModel) -> None:
    """Check that the graphs, which are given ids, have the words that nmt has."""
    path = model.path / SETTINGS
    with reading(model, path):
        settings = read_object(path)
    for name, vocabulary in (("source_tokens", model.src_vocabulary), ("target_tokens", model.tgt_vocabulary)):
        check_tokens(path, settings.get(name), vocabulary)


def _by_row(memory: Arrays, of_rows: NDArray[np.int64], layout: Layout) -> Arrays:
    """The memory of each hypothesis, which a graph reads: in a beam that of a sentence is repeated."""
    if _is_all(of_rows, layout.num_sentences):
        return memory
    return {name: value[of_rows] for name, value in memory.items()}


def _join(parts: Sequence[Arrays]) -> Arrays:
    """Arrays of several searches one after another, by name."""
    return {name: join_padded([torch.from_numpy(part[name]) for part in parts]).numpy() for name in parts[0]}


def _is_all(rows: NDArray[np.int64], number: int) -> bool:
    """True if these are all of so many rows, in order."""
    return len(rows) == number and np.array_equal(rows, np.arange(number))
