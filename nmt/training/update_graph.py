"""Updates of fixed shapes: a GPU records the kernels of one as a CUDA graph, and repeats them without the host.

An eager update of a small model is hundreds of kernels, and the host needs longer to launch each of them than the GPU
needs to run it. A CUDA graph launches all of them at once. It repeats the same kernels on the same memory, so that
batches are padded to few shapes, and copied to where the graph reads them.

What "bit for bit" means on CUDA: a recorded update runs the kernels of the eager update of the same shape in the same
order, with the random numbers that the eager one would draw, as torch's generator keeps its place beside a graph. A
resumed run therefore equals the uninterrupted one as far as eager updates do: sums of gradients that CUDA makes with
atomic additions may differ in their last digits from one call to the next, unless `train.deterministic` is true. An
update without padding draws other random numbers for dropout, as its tensors have other shapes.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from nmt.corpus.batching import Batch
from nmt.models.base import WordChooser
from nmt.models.seq2seq import Seq2Seq
from nmt.system.errors import TrainingError, is_out_of_memory, shorten
from nmt.text.vocabulary import EOS_ID, PAD_ID

STEP = 8
"""Rows and lengths are rounded up to a multiple of this."""
MAX_SHAPES = 64
"""Shapes whose recordings are kept; the one that was used least recently leaves."""

Results = Sequence[Tensor]
"""The scalars that an update returns."""
PaddedUpdate = Callable[[Batch, Tensor], Results]
"""Updates the weights from a padded batch; given it, and the number of its real target tokens, a scalar."""


class PaddedTask(nn.Module):
    """A model whose loss is that of the real words of a padded batch, with the gradient of the batch without padding.

    Args:
        model: The model, whose weights these are.
    """

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch, choose: WordChooser | None = None, label_smoothing: float = 0.0) -> Tensor:
        """See `Task.forward`; `positions` of the batch are all positions."""
        readouts, targets, penalties = self.model.readouts(batch, choose)
        loss = self.model.decoder.output.loss(readouts, targets, label_smoothing, ignored=PAD_ID)
        return loss + penalties.masked_fill(targets == PAD_ID, 0).sum()


class Shape(NamedTuple):
    """The shape of a padded batch: B, S and T of `Batch`."""

    rows: int
    src_length: int
    tgt_length: int


class Shapes:
    """The few shapes to which batches are padded.

    Batches of one size in sentences have the same rows, but for the last one of an epoch.

    Args:
        src_limit: Longest source that the model can read, in tokens with EOS; None: any.
        tgt_limit: Longest target that it can write; None: any.
    """

    def __init__(self, src_limit: int | None, tgt_limit: int | None) -> None:
        self.src_limit = src_limit
        self.tgt_limit = tgt_limit

    def of(self, batch: Batch) -> Shape:
        """The shape of a batch after padding."""
        rows, src_length = batch.src.shape
        tgt_length = batch.tgt_out.size(1)
        return Shape(round_up(rows), round_up(src_length, self.src_limit), round_up(tgt_length, self.tgt_limit))


def round_up(number: int, limit: int | None = None) -> int:
    """The next multiple of `STEP`, or the limit if that is less."""
    rounded = -(-number // STEP) * STEP
    return rounded if limit is None else min(rounded, limit)


class PaddedBatch:
    """The memory of batches of one shape, which each update fills anew.

    Rows beyond those of a batch have a source of EOS alone and no target. All counts are computed on the device, in the
    update itself.

    Args:
        shape: The shape.
        device: Device of the model.
    """

    def __init__(self, shape: Shape, device: torch.device) -> None:
        self.src = torch.full((shape.rows, shape.src_length), PAD_ID, device=device)
        self.tgt_in = torch.full((shape.rows, shape.tgt_length), PAD_ID, device=device)
        self.tgt_out = torch.full_like(self.tgt_in, PAD_ID)
        self.positions = torch.arange(self.tgt_out.numel(), device=device)
        self.indices = torch.zeros(shape.rows, dtype=torch.int64)  # which training does not read

    def fill(self, batch: Batch) -> None:
        """Copy a batch that is not larger, from any device."""
        for memory, words in ((self.src, batch.src), (self.tgt_in, batch.tgt_in), (self.tgt_out, batch.tgt_out)):
            memory.fill_(PAD_ID)
            memory[: words.size(0), : words.size(1)].copy_(words, non_blocking=True)
        self.src[len(batch.src) :, 0] = EOS_ID

    def read(self) -> tuple[Batch, Tensor]:
        """The batch, whose lengths are on the device too, and its real target tokens."""
        src_lengths = (self.src != PAD_ID).sum(dim=1)
        tokens = (self.tgt_out != PAD_ID).sum()
        return Batch(self.src, src_lengths, self.tgt_in, self.tgt_out, self.positions, self.indices), tokens


class Recorder(ABC):
    """Records work of fixed shapes, and repeats it."""

    def ordered(self) -> contextlib.AbstractContextManager[object]:
        """Context for all work on the weights: after what the caller has asked for, and before what it will ask for."""
        return contextlib.nullcontext()

    @abstractmethod
    def record(self, work: Callable[[], Results], optimizer: Optimizer) -> Callable[[], Results]:
        """Record work that was done once before, without doing it.

        Args:
            work: Reads and writes tensors that stay where they are.
            optimizer: The optimiser whose step is part of it.

        Returns:
            A function that does the work again, with the values that these tensors have then.
        """


class Repetition(Recorder):
    """Stands in for CUDA graphs on other devices: does the same work of the same shapes again, launch by launch."""

    def record(self, work: Callable[[], Results], optimizer: Optimizer) -> Callable[[], Results]:
        """See `Recorder.record`."""
        return work


class GraphRecorder(Recorder):
    """CUDA graphs, in which all work is on one stream and all memory in one pool.

    Recordings share the pool, as one after another runs as a whole, and no update reads what an earlier one left there.

    Args:
        device: Device of the model.
    """

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.pool = torch.cuda.graph_pool_handle()

    @contextlib.contextmanager
    def ordered(self) -> Iterator[None]:
        """See `Recorder.ordered`; a graph cannot be recorded on the default stream."""
        callers = torch.cuda.current_stream(self.stream.device)
        self.stream.wait_stream(callers)
        with torch.cuda.stream(self.stream):
            yield
        callers.wait_stream(self.stream)

    def record(self, work: Callable[[], Results], optimizer: Optimizer) -> Callable[[], Results]:
        """See `Recorder.record`."""
        graph = torch.cuda.CUDAGraph()
        # Meanwhile another thread makes batches, and may allocate memory: its calls are no part of the graph.
        mode = "thread_local"
        with _capturable(optimizer), torch.cuda.graph(graph, self.pool, self.stream, mode):
            results = work()

        def repeat() -> Results:
            graph.replay()
            return [result.clone() for result in results]  # the next repetition overwrites them

        return repeat


@contextlib.contextmanager
def _capturable(optimizer: Optimizer) -> Iterator[None]:
    """Tell Adam that it is recorded, which its fused kernel needs no other preparation for."""
    for group in optimizer.param_groups:
        group["capturable"] = True
    try:
        yield
    finally:
        for group in optimizer.param_groups:
            group["capturable"] = False


class UpdateGraphs:
    """Updates of a model by recordings, one for each shape of a batch.

    The first update of a shape is made as it is, which also prepares the libraries; its second one is recorded. The
    learning rate is a tensor that the optimiser reads on the device, in every update, so that all are alike.

    Args:
        update: Updates the weights.
        optimizer: The optimiser that it uses.
        shapes: The shapes to which batches are padded.
        recorder: Records updates.
        max_shapes: Shapes whose recordings are kept.
    """

    def __init__(
        self,
        update: PaddedUpdate,
        optimizer: Optimizer,
        shapes: Shapes,
        recorder: Recorder,
        max_shapes: int = MAX_SHAPES,
    ) -> None:
        self.update = update
        self.optimizer = optimizer
        self.shapes = shapes
        self.recorder = recorder
        self.max_shapes = max_shapes
        self.device: torch.device = optimizer.param_groups[0]["params"][0].device
        self.rates = [torch.zeros((), device=self.device) for _ in optimizer.param_groups]
        self.known: dict[Shape, _Recording] = {}  # the one that was used least recently comes first

    def __call__(self, batch: Batch) -> Results:
        """Update the weights from a batch.

        Raises:
            TrainingError: The update cannot be recorded.
        """
        shape = self.shapes.of(batch)
        recording = self.known.pop(shape, None) or _Recording(shape, self.device)
        self.known[shape] = recording
        if len(self.known) > self.max_shapes:
            del self.known[next(iter(self.known))]
        with self.recorder.ordered(), self._rates_on_device():
            recording.batch.fill(batch)
            return recording.advance(self.update, self.optimizer, self.recorder)

    @contextlib.contextmanager
    def _rates_on_device(self) -> Iterator[None]:
        """Let the optimiser read each learning rate, a number, from the device."""
        groups = self.optimizer.param_groups
        numbers = [group["lr"] for group in groups]
        for group, number, rate in zip(groups, numbers, self.rates, strict=True):
            group["lr"] = rate.fill_(number)
        try:
            yield
        finally:
            for group, number in zip(groups, numbers, strict=True):
                group["lr"] = number


class _Recording:
    """The updates of one shape."""

    def __init__(self, shape: Shape, device: torch.device) -> None:
        self.shape = shape
        self.batch = PaddedBatch(shape, device)
        self.uses = 0
        self.repeat: Callable[[], Results]

    def advance(self, update: PaddedUpdate, optimizer: Optimizer, recorder: Recorder) -> Results:
        """Update from the batch that was filled in: as it is at first, then by a recording."""

        def work() -> Results:
            return update(*self.batch.read())

        self.uses += 1
        if self.uses == 1:
            return work()
        if self.uses == 2:
            self.repeat = self._record(work, optimizer, recorder)
        return self.repeat()

    def _record(self, work: Callable[[], Results], optimizer: Optimizer, recorder: Recorder) -> Callable[[], Results]:
        try:
            return recorder.record(work, optimizer)
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise
            sizes = f"{self.shape.rows} rows of {self.shape.src_length} and {self.shape.tgt_length} tokens"
            reason = shorten(str(error).partition("\n")[0])
            problem = f"an update of {sizes} cannot be recorded as a CUDA graph ({reason})"
            raise TrainingError(f"{problem}; set train.graphs: false") from error


def make_recorder(device: torch.device) -> Recorder:
    """CUDA graphs on such a device, their stand-in elsewhere."""
    return GraphRecorder(device) if device.type == "cuda" else Repetition()
