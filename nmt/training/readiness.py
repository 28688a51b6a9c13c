"""Checks before a long run; nothing is written."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from nmt.config import DROPOUT, AdamSection, Config, ConstantForcingSection, DecodeSection
from nmt.corpus.batching import make_batch, plan_batches
from nmt.corpus.dataset import DataDirectory, EncodedPairs, open_data
from nmt.corpus.noise import make_noise
from nmt.evaluation.loss import mean_loss
from nmt.models.build import build_model
from nmt.models.seq2seq import Seq2Seq
from nmt.search.searcher import ModelSearcher
from nmt.system.device import resolve_device
from nmt.system.errors import OutOfMemory, when_out_of_memory
from nmt.system.memory import as_text, available_memory, peak_memory
from nmt.system.messages import Message
from nmt.system.progress import progress_bar
from nmt.training.consistency import with_consistency
from nmt.training.distributed import Workers
from nmt.training.findings import Finding
from nmt.training.loop import count_updates, plan_epoch, train_step
from nmt.training.loss_scale import make_loss_scale
from nmt.training.optimizers import make_optimizer
from nmt.training.setup import make_model, resolve
from nmt.training.timing import time_updates

SMALLER_MODEL = "lower the sizes under model"
SMALLER_BATCH = "lower train.batch.size or the sizes under model"
INITIAL_SAMPLE = 512
"""Pairs whose loss is measured before training."""
INITIAL_LIMIT = 2
"""How many times the expected loss it may be."""
LOSS_RISE = 0.5
"""Nats per token by which the loss of the first updates may rise."""
OVERFIT_PAIRS = 16
"""Pairs that a new model must learn by heart."""
OVERFIT_RATE = 0.003
"""The learning rate at which it does."""
OVERFIT_LOSS = 0.1
"""The loss, in nats per token, at which it knows them."""
OVERFIT_UPDATES = 200
"""Updates that it has for that."""
OVERFIT_LONGEST = 1500
"""Updates that it has while the loss falls."""
OVERFIT_WINDOW = 100
"""A loss falls if the lowest one is lower than so many updates ago."""
OVERFIT_FALL = 0.05
"""The share by which it must be lower."""
SHOWN = 2
"""Pairs whose translations are shown."""
TIMED_UPDATES = 20
"""Maximum number of updates that are timed."""
TIMED_SECONDS = 20.0
"""Seconds after which no further update is timed."""
NewModel = Callable[[Config], Seq2Seq]


def check_readiness(config: Config, data_directory: Path) -> Iterator[Finding]:
    """Check the data, build the model and try it out.

    Args:
        config: The whole config; its text settings must be those of the data.
        data_directory: Data directory written by `nmt preprocess`.

    Yields:
        Findings, as soon as each is known.

    Raises:
        NmtError: The data, the config or the device cannot be used.
    """
    data = open_data(data_directory)
    data.check_ids()
    device = resolve_device(config.train.device)
    config = resolve(config, data, Workers(device=device))
    available = available_memory(device)

    def new_model(config: Config) -> Seq2Seq:
        """The initial model of a run with this config."""
        torch.manual_seed(config.train.seed)
        return make_model(config, data, say=lambda _: None).to(device).train()

    yield from describe_data(data)
    with torch.device("meta"):  # takes no memory
        outline = build_model(config.model, len(data.src_vocabulary), len(data.tgt_vocabulary))
    yield (sizes := describe_parameters(config, outline, available))
    if sizes.ok is False:
        return
    checks = [
        ("initial loss", SMALLER_MODEL, check_initial_loss),
        ("one batch overfits", SMALLER_MODEL, check_overfitting),
        ("longest batch", SMALLER_BATCH, check_updates),
    ]
    for name, advice, check in checks:
        try:
            with when_out_of_memory(advice):
                yield from check(config, data, new_model)
        except OutOfMemory as error:
            yield Finding(name, False, Message("{error}", error=error))
    yield Finding("memory", None, f"at most {as_text(peak_memory())} so far, of {as_text(available)} available")


def describe_data(data: DataDirectory) -> Iterator[Finding]:
    """How much data there is; `nmt data` says more."""
    src = data.train.src.lengths
    tgt = data.train.tgt.lengths
    sizes = f"{len(data.train):,} pairs, median {np.median(src):.0f} source and {np.median(tgt):.0f} target tokens"
    longest = f"the longest source has {src.max():,}, the longest target {tgt.max():,}"
    yield Finding("training data", None, f"{sizes}; {longest}")
    none = "none: the last model of the run is kept, however good it is"
    yield Finding("validation data", None, f"{len(data.valid):,} pairs" if len(data.valid) else none)


def _find(name: str, ok: bool, text: str, advice: str) -> Finding:
    """A finding whose text ends with advice if it is a problem."""
    return Finding(name, ok, text if ok else f"{text}; {advice}")


def count_parameters(model: Seq2Seq) -> Counter[str]:
    """Number of weights of each part, 0 without weights of its own; shared weights count for the first."""
    parts = {"encoder.embedding": "source embedding", "decoder.embedding": "target embedding", "encoder": "encoder"}
    parts |= {f"decoder.{prefix}": part for prefix, part in model.decoder.parts.items()} | {"decoder": "decoder"}
    counts = Counter(dict.fromkeys(parts.values(), 0))
    for name, parameter in model.named_parameters():
        counts[next(part for prefix, part in parts.items() if name.startswith(f"{prefix}."))] += parameter.numel()
    return counts


def describe_parameters(config: Config, model: Seq2Seq, available: int) -> Finding:
    """Number of weights, by part, and whether memory suffices to train them.

    Args:
        config: The whole config.
        model: The model; may be on the meta device.
        available: Bytes of memory.
    """
    counts = count_parameters(model)
    parts = [f"{part} {format(count, ',') if count else 'none of its own'}" for part, count in counts.items()]
    text = f"{counts.total():,}: {', '.join(parts)}"
    copies = 4 if "adam" in config.train.optimizer.name else 2  # weights, gradients, two averages of them
    size = copies * sum(parameter.nbytes for parameter in model.parameters())
    if size <= available:
        return Finding("parameters", None, text)
    problem = f"with gradients and optimiser they take {as_text(size)}, {as_text(available)} are available"
    return Finding("parameters", False, f"{text}; {problem}; {SMALLER_MODEL}")


def check_initial_loss(config: Config, data: DataDirectory, new_model: NewModel) -> Iterator[Finding]:
    """The initial loss should not be far above that of random weights, or be lower with a parent.

    A Transformer with tied embeddings starts above it: the last word's own vector, which its readout contains, gives
    that word a high logit.
    """
    generator = np.random.default_rng(config.train.seed)
    sample = data.train.select(generator.permutation(len(data.train))[:INITIAL_SAMPLE])
    model = new_model(config)
    size = len(data.tgt_vocabulary)
    loss = mean_loss(model, sample)
    uniform = model.decoder.output.uniform_loss
    expected = model.decoder.output.initial_loss
    text = f"{loss:.2f} nats per token over {len(sample):,} pairs; uniform guessing has ln {size:,} = {uniform:.2f}"
    if config.parent.run is not None:
        helps = loss < uniform or config.parent.pieces == "own"  # new vectors among trained weights mislead at first
        yield _find("initial loss", helps, text, "the weights of the parent do not help")
        return
    if config.model.output_norm is not None:
        text += f", random vectors of norm {config.model.output_norm:g} {expected:.2f}"
    advice = f"more than {INITIAL_LIMIT} times that; see model.initialization"
    yield _find("initial loss", loss < INITIAL_LIMIT * expected, text, advice)


def check_overfitting(config: Config, data: DataDirectory, new_model: NewModel) -> Iterator[Finding]:
    """A working model overfits a few pairs, and then translates them exactly.

    It gets more updates than `OVERFIT_UPDATES` as long as its loss falls: small models need them.
    """
    plain = {"teacher_forcing": ConstantForcingSection(), "label_smoothing": 0.0}
    options = config.train.model_copy(update={**plain, "optimizer": AdamSection(learning_rate=OVERFIT_RATE)})
    attention = config.model.attention.model_copy(update={"dropout": 0.0})
    without_dropout = config.model.model_copy(update={**dict.fromkeys(DROPOUT, 0.0), "attention": attention})
    model = new_model(config.model_copy(update={"model": without_dropout}))
    optimizer = make_optimizer(options.optimizer, model)
    pairs = data.train.select(typical_pairs(data.train, OVERFIT_PAIRS))
    batch = make_batch(pairs, np.arange(len(pairs)))
    losses = [mean_loss(model, pairs)]
    falls = True
    with progress_bar(total=OVERFIT_LONGEST, desc="overfitting one batch", unit=" updates", leave=False) as bar:
        for update in range(OVERFIT_LONGEST):
            if losses[-1] < OVERFIT_LOSS or (update >= OVERFIT_UPDATES and not falls):
                break
            train_step(model, [batch], optimizer, options, update)
            losses.append(mean_loss(model, pairs))
            falls = min(losses) < (1 - OVERFIT_FALL) * min(losses[:-OVERFIT_WINDOW] or losses[:1])
            bar.update()
    learnt = losses[-1] < OVERFIT_LOSS
    reached = f"loss {losses[-1]:z.2f} after {len(losses) - 1} updates of Adam at {OVERFIT_RATE}"
    text = f"{len(pairs)} pairs of median length: {reached}"
    if not learnt and falls:
        yield Finding("one batch overfits", None, f"{text}; not settled: the loss still falls")
    else:
        advice = f"above {OVERFIT_LOSS}: the model cannot overfit them; see the sizes and parts under model"
        yield _find("one batch overfits", learnt, text, advice)

    sources = [pairs.src[number].tolist() for number in range(len(pairs))]
    references = [pairs.tgt[number].tolist() for number in range(len(pairs))]
    searcher = ModelSearcher([model.eval()], DecodeSection(beam_size=1, max_length=config.decode.max_length))
    translations = [ranked[0].ids if ranked else [] for ranked in searcher.search(sources)]
    is_exact = [ids == reference for ids, reference in zip(translations, references, strict=True)]
    text = f"{sum(is_exact)} of these {len(pairs)} sources are translated exactly"
    # A model that has not learnt the pairs cannot be expected to translate them.
    passed = sum(is_exact) >= len(pairs) / 2 if learnt else None
    yield Finding("decoding", passed, text)
    for number in range(min(SHOWN, len(pairs))):
        source = " ".join(data.src_vocabulary.decode(sources[number]))
        translation = " ".join(data.tgt_vocabulary.decode(translations[number]))
        reference = " ".join(data.tgt_vocabulary.decode(references[number]))
        passed = True if is_exact[number] else None
        yield Finding("sample", passed, f"{source} -> {translation} (reference: {reference})")


def typical_pairs(pairs: EncodedPairs, number: int) -> NDArray[np.int64]:
    """Indices of pairs of median length with different sources, so that each has one correct translation."""
    order = np.concatenate(plan_batches(pairs.src.lengths, pairs.tgt.lengths, size=number, unit="sentences"))
    middle = len(order) // 2
    distinct: dict[bytes, int] = {}
    for index in itertools.chain(order[middle:], order[:middle][::-1]):
        distinct.setdefault(pairs.src[index].tobytes(), index)
        if len(distinct) == number:
            break
    return np.array(list(distinct.values()), dtype=np.int64)


def check_updates(config: Config, data: DataDirectory, new_model: NewModel) -> Iterator[Finding]:
    """Try the longest batch, and ordinary updates: whether they fit into memory, their losses and their speed."""
    options = config.train
    pairs = data.train
    noise = make_noise(config.train, data)
    groups = plan_epoch(pairs, options, 1)
    model = new_model(config)
    src = pairs.src.lengths
    tgt = pairs.tgt.lengths
    longest = max(itertools.chain(*groups), key=lambda batch: len(batch) * (src[batch].max() + tgt[batch].max()))
    # With accumulation, the gradients of one batch are in memory during the next.
    batches = [make_batch(pairs, longest, noise)] * min(2, options.batch.accumulate)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    learner = with_consistency(model, options.consistency)
    scale = make_loss_scale(options.precision, model.device)
    train_step(learner, batches, make_optimizer(options.optimizer, model), options, 0, scale=scale)
    model.load_state_dict(state)
    sizes = f"at most {src[longest].max():,} source and {tgt[longest].max():,} target tokens"
    yield Finding("longest batch", True, f"{len(longest):,} sentences of {sizes}: forward and backward succeeded")
    timing = time_updates(options, pairs, noise, groups, model, TIMED_UPDATES, TIMED_SECONDS)
    losses = timing.losses
    last = timing.losses[-5:]
    mean = sum(last) / len(last)
    text = f"loss {losses[0]:.2f} at the first, {mean:z.2f} over the last {len(last)} of {len(losses)}"
    advice = "lower train.optimizer.learning_rate, or set train.optimizer.clip_norm or train.schedule.warmup"
    yield _find("first updates", mean < losses[0] + LOSS_RISE, text, advice)
    speed = timing.tokens / timing.seconds
    total = count_updates(options, len(groups))
    seconds = (len(pairs.tgt.ids) + len(pairs)) / speed
    measured = f"{timing.updates} updates in {timing.seconds:.1f} s, {speed:,.0f} target tokens/s"
    epoch = f"{seconds / 60:.1f} minutes per epoch of {len(groups):,} updates"
    whole = f"{seconds * total / len(groups) / 3600:.2f} hours for all {total:,} updates, without validation"
    yield Finding("speed", None, f"{measured}: {epoch}, {whole}")
    if options.schedule.warmup > total:
        text = f"{options.schedule.warmup:,} updates, but the run ends after {total:,}; lower train.schedule.warmup"
        yield Finding("warm-up", False, text)
