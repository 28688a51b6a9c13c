"""Tests of the code that users write: attention scores of their own, and the functions of a course.

`python -m nmt.testing exercise1.py` checks the functions that the exercises in docs/learn/exercises.md ask for, and
attention classes with a `forward(query, states, mask)`. Scores have the tests that the built-in ones pass, in a file
that pytest collects:

    from nmt.testing import ScoreTests
    from my_module import MyScore

    class TestMyScore(ScoreTests):
        score = MyScore
        options = {"size": 8}  # if it has required ones
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import safetensors.torch
import torch
from torch import Tensor, nn

from nmt.config import AttentionSection, ModelSection, RecurrentDecoderSection, RecurrentEncoderSection
from nmt.exercises import check_file
from nmt.layers.attention.attention import ScoreAttention, build_attention
from nmt.layers.attention.score import Score
from nmt.layers.attention.source_memory import Memory
from nmt.models.build import build_model
from nmt.models.recurrent.decoder import RecurrentDecoder
from nmt.models.seq2seq import Seq2Seq
from nmt.text.vocabulary import PAD_ID

LENGTHS = torch.tensor([5, 3, 1])
QUERIES = 6
KEY_SIZE = 4
ORDERS = (("bahdanau", False), ("luong", False), ("luong", True))


class ScoreTests:
    """Tests that every score has to pass; subclass with a name that starts with Test, and set `score`.

    Everything is computed in float64 with weights drawn from U(-1, 1), which replace the initial weights, as in a real
    model.
    """

    score: ClassVar[type[Score]]
    """The class to test."""
    options: ClassVar[Mapping[str, Any]] = {}
    """Its options, as in `model.attention.options`."""

    def test_there_is_one_score_for_each_query_and_position(self) -> None:
        """Shape [B, N, S], finite, for decoder and encoder states of different sizes if the class allows them."""
        score = self._attention().score
        queries = self._queries()
        states = _states()
        try:
            scores = score(queries, score.project_keys(states))
        except RuntimeError as error:
            raise AssertionError(
                f"queries {list(queries.shape)} and encoder states {list(states.shape)} cannot be compared ({error}); "
                "set needs_equal_sizes = True if it multiplies them directly"
            ) from error
        expected = [len(LENGTHS), QUERIES, states.size(1)]
        shape = list(scores.shape)
        assert shape == expected, f"the shape should be [B, N, S] = {expected}, but is {shape}"
        assert scores.isfinite().all(), "scores should be finite"

    def test_alignments_are_a_distribution_over_real_tokens(self) -> None:
        """Not negative, exactly 0 on padding, and with sum 1."""
        alignment, context = _attend(self._attention(), self._queries(), _states())
        assert (alignment >= 0).all(), "alignments should not be negative or NaN"
        assert (alignment.masked_select(~_mask()[:, None, None]) == 0).all(), "alignments should be 0 on padding"
        _assert_equal(alignment.sum(dim=-1), torch.ones(alignment.shape[:3]).double(), "alignments should sum to 1")
        assert context.isfinite().all(), "contexts should be finite"

    def test_padding_changes_nothing(self) -> None:
        """A sentence's alignment does not depend on the longest sentence in the batch."""
        attention = self._attention()
        queries = self._queries()
        alignment, context = _attend(attention, queries, _states())
        padded_alignment, padded_context = _attend(attention, queries, _states(padding=4))
        words = "the alignment of a sentence should not depend on how much padding follows it"
        _assert_equal(padded_alignment[..., : alignment.size(-1)], alignment, words)
        _assert_equal(padded_context, context, words)

    def test_alignments_do_not_depend_on_other_sentences(self) -> None:
        """A sentence's alignment is the same in any batch."""
        attention = self._attention()
        queries = self._queries()
        memory = _memory(attention, _states())
        for sentence in range(len(LENGTHS)):
            row = slice(sentence, sentence + 1)
            alone = attention.attend(queries[row], _memory(attention, _states()[row], LENGTHS[row]), {})[1]
            together = attention.attend(queries, memory, {})[1][row]
            _assert_equal(alone, together, "the alignment of a sentence should not depend on the others in its batch")

    def test_queries_do_not_see_each_other(self) -> None:
        """Many queries at once (target positions or hypotheses) give the same result as one by one."""
        attention = self._attention()
        queries = self._queries()
        alignment, _ = _attend(attention, queries, _states())
        for index in range(QUERIES):
            row = slice(index, index + 1)
            alone, _ = _attend(attention, queries[:, row], _states())
            _assert_equal(alone, alignment[:, row], "the alignment of a query should not depend on the other queries")

    def test_keys_are_computed_once_per_sentence(self) -> None:
        """The result of `project_keys` is valid for every step, also after other sentences were encoded."""
        attention = self._attention()
        queries = self._queries()
        first, _ = _attend(attention, queries, _states())
        memory = _memory(attention, _states())
        for _ in range(2):
            again = attention.attend(queries, memory, {})[1]
            _memory(attention, -_states())
            _assert_equal(again, first, "keys should not be changed by a step or stored on the module")

    def test_zeros_have_finite_gradients(self) -> None:
        """Encoder states of padding are 0, and so is the decoder's first state with `initial_state: zeros`."""
        attention = self._attention()
        queries = torch.zeros_like(self._queries()).requires_grad_()
        states = _states()
        _, context = _attend(attention, queries, states.requires_grad_())
        torch.autograd.backward(context.square().sum())
        for tensor in (queries, states, *attention.parameters()):
            assert tensor.grad is None or tensor.grad.isfinite().all(), "gradients should be finite at vectors of 0"

    def test_gradients_reach_every_weight(self) -> None:
        """In plain attention, and with several heads and with coverage if the class allows them."""
        for choices in self._choices():
            attention = self._attention(**choices)
            memory = _memory(attention, _states().requires_grad_())
            contexts, _ = attention.attend_all(self._queries(), memory, attention.initial_state(memory))
            torch.autograd.backward(contexts.square().sum())
            for name, weight in attention.score.named_parameters():
                # A bias that adds the same to all positions has a gradient of rounding errors only.
                reached = weight.grad is not None and weight.grad.abs().max() > 1e-12
                assert reached, f"the weight {name} should influence the alignment {_describe(choices)}"

    def test_gradients_match_finite_differences(self) -> None:
        """For the queries, the encoder states and every weight."""
        attention = self._attention()

        def run(queries: Tensor, states: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
            return _attend(attention, queries, states)

        inputs = (self._queries()[:, :2].requires_grad_(), _states().requires_grad_(), *attention.parameters())
        try:
            torch.autograd.gradcheck(run, inputs)
        except RuntimeError as error:
            raise AssertionError(f"gradients should match finite differences: {error}") from error

    @torch.no_grad()
    def test_teacher_forcing_equals_repeated_steps(self) -> None:
        """A decoder computes the same for a whole target as word by word, in every order."""
        for choices in self._choices():
            for order, input_feeding in ORDERS:
                model = self._model(order, input_feeding, choices)
                torch.manual_seed(5)
                src = torch.randint(4, 9, _mask().shape).masked_fill(~_mask(), PAD_ID)
                tgt = torch.randint(4, 8, (len(LENGTHS), QUERIES))
                encoded = model.encode(src, LENGTHS)
                output = model.decoder(tgt, encoded)
                memory, state = model.decoder.start(encoded)
                weights = model.decoder.prepare()
                for position, words in enumerate(tgt.unbind(1)):
                    logits, alignment, state = model.decoder.step(words, memory, state, weights)
                    message = f"teacher forcing should equal repeated steps ({order}) {_describe(choices)}"
                    _assert_equal(output.alignments[:, position], alignment, message)
                    _assert_equal(model.decoder.output(output.readouts[:, position]), logits, message)

    def test_a_loaded_score_equals_the_saved_one(self) -> None:
        """All that it needs is in its weights, buffers and options."""
        attention = self._attention()
        unlike = self._attention(seed=1)
        unlike.load_state_dict(safetensors.torch.load(safetensors.torch.save(attention.state_dict())))
        loaded, saved = (_attend(module, self._queries(), _states())[0] for module in (unlike, attention))
        _assert_equal(
            loaded, saved, "a loaded score should equal the saved one; make its tensors parameters or buffers"
        )

    def _query_size(self) -> int:
        return KEY_SIZE if self.score.needs_equal_sizes else KEY_SIZE - 1

    def _queries(self) -> Tensor:
        torch.manual_seed(2)
        return torch.rand(len(LENGTHS), QUERIES, self._query_size(), dtype=torch.float64) * 2 - 1

    def _attention(self, seed: int = 0, **choices: Any) -> ScoreAttention:
        torch.manual_seed(seed)
        options = {**self.score.example, **self.options}
        section = AttentionSection(options=options, **choices)
        attention = build_attention(section, self._query_size(), KEY_SIZE, self.score)
        assert isinstance(attention, ScoreAttention)
        _randomize(attention)
        return attention

    def _choices(self) -> Iterator[dict[str, Any]]:
        """Keys of `model.attention` that the class supports."""
        yield {}
        if self.score.multi_head:
            yield {"heads": 2}
        if self.score.local:
            yield {"window": {"name": "local_p", "radius": 2}}
        if self.score.takes_features:
            yield {"past": {"name": "coverage"}}

    def _model(self, order: Any, input_feeding: bool, choices: Mapping[str, Any]) -> Seq2Seq:
        config = ModelSection(
            embedding_size=3,
            encoder=RecurrentEncoderSection(cell="gru", hidden_size=KEY_SIZE // 2),
            decoder=RecurrentDecoderSection(
                cell="gru", hidden_size=self._query_size(), order=order, input_feeding=input_feeding
            ),
            attention=AttentionSection(score="none"),
        )
        model = build_model(config, 9, 8)
        _randomize(model)
        assert isinstance(model.decoder, RecurrentDecoder)
        # Set directly: a class inside a function has no path that a config could name.
        model.decoder.cell.attention = self._attention(**choices)
        return model


@torch.no_grad()
def _randomize(module: nn.Module) -> None:
    module.double().eval()
    for parameter in module.parameters():
        parameter.uniform_(-1, 1)


def _mask() -> Tensor:
    """True at real tokens, [B, S]."""
    return torch.arange(int(LENGTHS.max())) < LENGTHS.unsqueeze(1)


def _states(padding: int = 0) -> Tensor:
    """Encoder states in [-1, 1], 0 on padding, [B, S + padding, KEY_SIZE]."""
    torch.manual_seed(1)
    states = torch.rand(*_mask().shape, KEY_SIZE, dtype=torch.float64) * 2 - 1
    return nn.functional.pad(states * _mask().unsqueeze(2), (0, 0, 0, padding))


def _memory(attention: ScoreAttention, states: Tensor, lengths: Tensor = LENGTHS) -> Memory:
    mask = torch.arange(states.size(1)) < lengths.unsqueeze(1)
    return attention.memorize(states, states[:, 0], mask, lengths)


def _attend(attention: ScoreAttention, queries: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    """Alignment [B, N, 1, S] and context [B, N, D] of plain attention."""
    context, alignment, _ = attention.attend(queries, _memory(attention, states), {})
    return alignment, context


def _assert_equal(actual: Tensor, expected: Tensor, message: str) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-10, msg=lambda details: f"{message}\n{details}")


def _describe(choices: Mapping[str, Any]) -> str:
    return f"with {choices}" if choices else "in plain attention"


def check_exercises(files: Sequence[str]) -> str | bool:
    """Check the functions and classes in files, print a line for each, and return the exit status of a process."""
    if not files:
        return "error: no file; name those of your exercises: python -m nmt.testing exercise1.py"
    failed = False
    for file in files:
        for finding in check_file(Path(file)):
            print(finding)
            failed |= bool(finding.problem)
    return failed


if __name__ == "__main__":
    sys.exit(check_exercises(sys.argv[1:]))
