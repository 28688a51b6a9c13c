"""The sections of `train`: batches, optimisers, schedules, validation, checkpoints."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from nmt.config.fields import (
    AtMost,
    Automatic,
    Betas,
    Conflict,
    Count,
    FileCount,
    Flag,
    Kinds,
    NonNegative,
    Number,
    Positive,
    Probability,
    Processes,
    Section,
    Seed,
    Share,
    ValidationMetric,
    Watched,
    is_auto,
    key,
)


class BatchSection(Section):
    """Length-bucketed batches."""

    size: Annotated[Count, Automatic()] = key(64, unit="sentences or tokens")
    """Sentences, or tokens of the longer side with padding: see unit."""
    unit: Literal["sentences", "tokens"] = "sentences"
    """What size counts."""
    accumulate: Count = key(1, unit="batches")
    """Batches whose gradients are combined in one update."""

    def conflicts(self, above: str) -> Iterator[Conflict]:
        """A number of sentences that is meant to be one of tokens."""
        if is_auto(self.size) and self.unit == "tokens":
            yield "size", "auto is a number of sentences; set a number of tokens"


class _Optimizer(Section):
    """Keys of every optimiser. Keys are named as the parameters of torch.optim, `lr` and `eps` written out."""

    name: str
    learning_rate: Positive = key(0.001, unit="1")
    """Step size at the peak of the schedule."""
    weight_decay: Annotated[Number, Field(ge=0)] = key(0.0, unit="1")
    """L2 penalty; adamw, muon: decoupled from the gradient."""
    clip_norm: Positive | None = key(1.0, unit="1")
    """Maximum norm of the whole gradient; null is off."""


class _Adam(_Optimizer):
    betas: Betas = key((0.9, 0.999), unit="1")
    """Decay of the running means of gradient and squared gradient."""
    epsilon: Positive = key(1e-8, unit="1")
    """Keeps the denominator from 0."""


class AdamSection(_Adam):
    """Adam (Kingma & Ba, 2015)."""

    name: Literal["adam"] = "adam"


class AdamWSection(_Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter, 2019)."""

    name: Literal["adamw"] = "adamw"


class SGDSection(_Optimizer):
    """Stochastic gradient descent."""

    name: Literal["sgd"] = "sgd"
    momentum: Probability = key(0.0, unit="1")
    """Decay of the running sum of gradients; 0 is off."""


class RMSpropSection(_Optimizer):
    """RMSprop (Hinton, 2012)."""

    name: Literal["rmsprop"] = "rmsprop"
    alpha: Probability = key(0.99, unit="1")
    """Decay of the running mean of the squared gradient."""
    epsilon: Positive = key(1e-8, unit="1")
    """Keeps the denominator from 0."""
    momentum: Probability = key(0.0, unit="1")
    """Decay of the running sum of gradients; 0 is off."""
    centered: Flag = False
    """Divide by an estimate of the gradient's standard deviation."""


class RAdamSection(_Adam):
    """Rectified Adam (Liu et al., 2020)."""

    name: Literal["radam"] = "radam"


class NAdamSection(_Adam):
    """Adam with Nesterov momentum (Dozat, 2016)."""

    name: Literal["nadam"] = "nadam"
    momentum_decay: Annotated[Number, Field(ge=0)] = key(0.004, unit="1")
    """How fast the momentum grows to its beta."""


class AdadeltaSection(_Optimizer):
    """Adadelta (Zeiler, 2012)."""

    name: Literal["adadelta"] = "adadelta"
    learning_rate: Positive = key(1.0, unit="1")
    """Step size at the peak of the schedule."""
    rho: Probability = key(0.9, unit="1")
    """Decay of the running means of squared gradient and squared step."""
    epsilon: Positive = key(1e-6, unit="1")
    """Keeps the denominator from 0."""


class MuonSection(_Adam):
    """Muon (Jordan et al., 2024) for matrices, AdamW with betas and epsilon for the other weights."""

    name: Literal["muon"] = "muon"
    momentum: Probability = key(0.95, unit="1")
    """Decay of the running sum of gradients; 0 is off."""
    nesterov: Flag = True
    """Nesterov momentum."""
    ns_steps: Annotated[Count, AtMost(99, "torch allows no more")] = key(5, unit="steps")
    """Steps of the iteration that makes an update orthogonal."""
    adjust_lr_fn: Literal["original", "match_rms_adamw"] = "match_rms_adamw"
    """How an update is scaled: by the ratio of the matrix's sides, or to the size of AdamW's (Liu et al., 2025)."""


_Optimizers = AdamSection | AdamWSection | SGDSection | RMSpropSection | RAdamSection | NAdamSection | AdadeltaSection
OptimizerSection = Annotated[_Optimizers | MuonSection, Kinds("name", "Optimiser; see torch.optim.")]


class _Schedule(Section):
    """Key of every schedule."""

    needs_length: ClassVar[bool] = False
    """True if the learning rate depends on the length of the whole run, so that another length is another run."""
    name: str
    warmup: NonNegative = key(0, unit="updates")
    """Linear warm-up at the start."""


class ConstantRateSection(_Schedule):
    """Stays as it is."""

    name: Literal["constant"] = "constant"


class PlateauRateSection(_Schedule):
    """Falls when validation stalls."""

    name: Literal["plateau"] = "plateau"
    factor: Annotated[Number, Field(gt=0, lt=1)] = key(0.5, unit="1")
    """Multiply by this."""
    patience: NonNegative = key(0, unit="validations")
    """Validations without improvement to wait."""
    floor: Share = key(0.01, unit="share")
    """Minimum share of the learning rate."""


class InverseRootRateSection(_Schedule):
    """Falls with the root of updates (Vaswani et al., 2017)."""

    name: Literal["inverse_sqrt"] = "inverse_sqrt"
    warmup: Count = key(..., unit="updates")
    """Linear warm-up at the start."""


class CosineRateSection(_Schedule):
    """Falls to `floor` over the run."""

    needs_length: ClassVar[bool] = True
    name: Literal["cosine"] = "cosine"
    floor: Share = key(0.01, unit="share")
    """Minimum share of the learning rate."""


ScheduleSection = Annotated[
    ConstantRateSection | PlateauRateSection | InverseRootRateSection | CosineRateSection,
    Kinds("name", "Learning rate over time."),
]


class _Forcing(Section):
    """Keys of all teacher forcing."""

    ratio: Share = key(1.0, unit="probability")
    """Initial probability of the reference."""
    unit: Literal["sentence", "token"] = "sentence"
    """Draw once per sentence or once per token."""
    schedule: str

    @property
    def lowest(self) -> float:
        """The probability at the end."""
        return self.ratio


class ConstantForcingSection(_Forcing):
    """Stays as it is."""

    schedule: Literal["constant"] = "constant"


class _FallingForcing(_Forcing):
    minimum: Share = key(0.0, unit="probability")
    """Final probability."""

    @property
    def lowest(self) -> float:
        """See `_Forcing.lowest`."""
        return self.minimum

    def conflicts(self, above: str) -> Iterator[Conflict]:
        """A probability that does not fall."""
        if self.minimum > self.ratio:
            yield "minimum", f"is above the ratio {self.ratio}"


class LinearForcingSection(_FallingForcing):
    """Falls in a line (Bengio et al., 2015)."""

    schedule: Literal["linear"] = "linear"
    updates: Count = key(..., unit="updates")
    """Time until the minimum."""


class SigmoidForcingSection(_FallingForcing):
    """Falls with k / (k + exp(update / k)) (Bengio et al., 2015)."""

    schedule: Literal["inverse_sigmoid"] = "inverse_sigmoid"
    updates: Count = key(..., unit="updates")
    """K."""


TeacherForcingSection = Annotated[
    ConstantForcingSection | LinearForcingSection | SigmoidForcingSection,
    Kinds("schedule", "How often the decoder reads the reference instead of its own last word."),
]


class NoConsistencySection(Section):
    """No such term."""

    name: Literal["none"] = "none"


class SimCutSection(Section):
    """Predictions for a sentence pair and for itself with some words cut (Gao et al., 2022)."""

    name: Literal["simcut"] = "simcut"
    weight: Annotated[Number, Field(ge=0, le=1000)] = key(3.0, unit="1")
    """Weight of the divergence of the predictions."""
    share: Probability = key(0.05, unit="probability")
    """Probability of cutting a word: its vector is 0, on both sides; the end of a source and the start of a target
    stay."""
    stop_gradient: Flag = False
    """True if only the predictions for the cut pair learn from the divergence."""


ConsistencySection = Annotated[
    NoConsistencySection | SimCutSection,
    Kinds("name", "A term of the loss: how far predictions for changed input are from those for the input as it is."),
]


class ValidationSection(Section):
    """How often to validate, what counts as better, when to stop."""

    every: Count | None = key(None, unit="updates")
    """Time between validations; null: each epoch."""
    metric: ValidationMetric = "bleu"
    """Chooses the best model and stops the run."""
    patience: Count | None = key(5, unit="validations")
    """Stop after so many validations without a new best; null never stops."""


class NoiseSection(Section):
    """Noise on training text, drawn for each sentence in each epoch; only the seed decides."""

    bpe_dropout: Probability = key(0.0, unit="probability")
    """BPE subwords: probability of skipping a merge (Provilkov et al., 2020)."""
    unigram_alpha: Positive | None = key(None, unit="1")
    """Unigram subwords: sample segmentations with probability ~ P^alpha (Kudo, 2018); null is off."""
    src_word_dropout: Probability = key(0.0, unit="probability")
    """Probability of making a source token unknown."""
    tgt_word_dropout: Probability = key(0.0, unit="probability")
    """The same for the decoder's input."""


class CheckpointSection(Section):
    """Checkpoints, from which an interrupted run continues, and models to keep."""

    every: Count | None = key(None, unit="updates")
    """Time between checkpoints; null: only minutes decides."""
    minutes: Positive | None = key(5.0, unit="minutes")
    """Maximum time without a checkpoint; null: only every decides."""
    keep_last: FileCount = key(2, unit="checkpoints")
    """Newest checkpoints to keep."""
    keep_best: FileCount = key(1, unit="models")
    """Best models to keep; more than 1 are also stored in RUN/models."""


class TrainSection(Section):
    """One training run."""

    seed: Seed = key(1, unit="1")
    """Seed of every random choice of the run."""
    epochs: Annotated[Count, Automatic()] = key(20, unit="epochs")
    """Passes over the training split."""
    max_updates: Count | None = key(None, unit="updates")
    """Stop after so many updates; null is off."""
    batch: BatchSection = BatchSection()
    optimizer: OptimizerSection = AdamSection()
    schedule: ScheduleSection = ConstantRateSection()
    teacher_forcing: TeacherForcingSection = ConstantForcingSection()
    label_smoothing: Probability = key(0.0, unit="share")
    """Share of the target's probability that is spread over all words."""
    consistency: ConsistencySection = NoConsistencySection()
    ema_decay: Probability | None = key(None, unit="1")
    """Decay of a moving average of the weights, which is validated and stored in their place; null is off."""
    noise: NoiseSection = NoiseSection()
    validation: ValidationSection = ValidationSection()
    checkpoint: CheckpointSection = CheckpointSection()
    watch: Watched = key(0, unit="sentences")
    """Validation sentences whose attention is stored at each validation, and shown in live.html; see `nmt attention
    --training`."""
    tensorboard: Flag = False
    """Write curves, a sample and the attention of watched sentences for TensorBoard (extra `tensorboard`)."""
    max_skipped: NonNegative = key(20, unit="updates")
    """Maximum consecutive updates to skip because loss or gradient is not finite."""
    device: Annotated[str, Field(pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")] = "auto"
    """auto, cpu, mps, cuda or cuda:N; auto is the fastest available."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "float32"
    """bfloat16 and float16: autocast, float16 with a scaled loss; auto: bfloat16 if the device's products are clearly
    faster in it, and float16 on a GPU without bfloat16."""
    graphs: Literal["auto"] | Flag = False
    """Record updates as CUDA graphs, for batches that are padded to few shapes; auto: on one GPU, if the other settings
    allow it. No card has run them yet. Without a GPU, true only pads batches."""
    deterministic: Flag = False
    """On a GPU, use only kernels that add in a fixed order, so that a repeated run has the same weights to the bit;
    slower."""
    threads: Processes | None = key(None, unit="threads")
    """CPU threads; null is torch's choice."""
    log_every: Count = key(50, unit="updates")
    """Time between lines of metrics.jsonl."""

    def conflicts(self, above: str) -> Iterator[Conflict]:
        """Two readings of a pair with words of the model's own."""
        if self.consistency.name != "none" and self.teacher_forcing.lowest < 1:
            reads = "compares two readings of the same words, but the decoder also reads its own"
            remedy = f"set {above}teacher_forcing.ratio: 1, or none here"
            yield "consistency.name", f"{self.consistency.name} {reads}; {remedy}"
