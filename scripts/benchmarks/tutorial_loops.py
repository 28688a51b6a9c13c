"""Training loops as in tutorials on attention, in plain PyTorch, to compare their speed.

Two set-ups on encoded pairs of this project: an LSTM with Luong's concat attention and input feeding that trains on
one sentence pair at a time, and a GRU with additive attention in Bahdanau's order that trains on batches of 64, all
padded to the longest sentence of the split. As in the tutorials, both loop over the target with an output layer and a
loss per step. Unlike in some tutorials, all source positions are scored at once.

python -m benchmarks.tutorial_loops luong|bahdanau --data DIR --updates 150
"""

import argparse
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nmt.corpus.dataset import EncodedPairs, Sequences, open_data
from nmt.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

BATCH_SIZES = {"luong": 1, "bahdanau": 64}
FORCING = 0.5  # probability of teacher forcing: per sentence in Luong's loop, per step in Bahdanau's


def main() -> None:
    """Train for some updates and print the speed at regular intervals."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("loop", choices=BATCH_SIZES)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--updates", type=int, required=True)
    parser.add_argument("--report-every", type=int, default=20)
    arguments = parser.parse_args()
    random.seed(1)
    torch.manual_seed(1)
    data = open_data(arguments.data)
    made = updates(arguments.loop, data.train, len(data.src_vocabulary), len(data.tgt_vocabulary))
    begin, tokens = time.perf_counter(), 0
    for number in range(1, arguments.updates + 1):
        tokens += next(made)
        if number % arguments.report_every == 0:
            speed = tokens / (time.perf_counter() - begin)
            print(json.dumps({"update": number, "tokens_per_second": round(speed, 1)}), flush=True)
            begin, tokens = time.perf_counter(), 0


def read_speeds(log: str) -> list[float]:
    """Target tokens per second of each report printed by `main`."""
    return [json.loads(line)["tokens_per_second"] for line in log.splitlines() if line.startswith("{")]


class LuongEncoder(nn.Module):
    """An LSTM."""

    def __init__(self, words: int, size: int = 256) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.lstm = nn.LSTM(size, size, batch_first=True)

    def forward(self, words: Tensor) -> tuple[Tensor, Any]:
        """Words [B, S] -> states [B, S, H], no feedback [B, H] and the last state."""
        states, last = self.lstm(self.embedding(words))
        return states, (torch.zeros_like(states[:, 0]), last)


class LuongDecoder(nn.Module):
    """Update, attend, feed the attentional vector back."""

    def __init__(self, words: int, size: int = 256) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.lstm = nn.LSTM(2 * size, size, batch_first=True)
        self.attention = nn.Linear(2 * size, size)
        self.energy = nn.Linear(size, 1, bias=False)
        self.combination = nn.Linear(2 * size, size)
        self.output = nn.Linear(size, words)

    def forward(self, words: Tensor, state: Any, states: Tensor) -> tuple[Tensor, Any]:
        """Words [B], feedback and state, states [B, S, H] -> log-probabilities [B, V], new feedback and state."""
        feedback, last = state
        hidden, last = self.lstm(torch.cat([self.embedding(words), feedback], dim=1).unsqueeze(1), last)
        both = torch.cat([hidden.expand(-1, states.size(1), -1), states], dim=2)  # [B, S, 2 * H]
        weights = torch.softmax(self.energy(torch.tanh(self.attention(both))), dim=1)
        context = (weights * states).sum(dim=1)
        feedback = torch.tanh(self.combination(torch.cat([context, hidden[:, 0]], dim=1)))
        return torch.log_softmax(self.output(feedback), dim=1), (feedback, last)


class BahdanauEncoder(nn.Module):
    """A bidirectional GRU."""

    def __init__(self, words: int, size: int = 128) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.gru = nn.GRU(size, size, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(size, size)

    def forward(self, words: Tensor) -> tuple[Tensor, Any]:
        """Words [B, S] -> states [B, S, 2 * H], first decoder state [B, H] from the backward direction."""
        states, last = self.gru(self.embedding(words))
        return states, torch.tanh(self.bridge(last[1]))


class BahdanauDecoder(nn.Module):
    """Attend with the last state, then update."""

    def __init__(self, words: int, size: int = 128) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(2 * size, size)
        self.energy = nn.Linear(size, 1)
        self.gru = nn.GRU(3 * size, size, batch_first=True)
        self.output = nn.Linear(size, words)

    def forward(self, words: Tensor, state: Any, states: Tensor) -> tuple[Tensor, Any]:
        """Words [B], state [B, H], encoder states [B, S, 2 * H] -> log-probabilities [B, V], new state."""
        hidden = torch.tanh(self.query(state).unsqueeze(1) + self.key(states))
        weights = torch.softmax(self.energy(hidden), dim=1)
        context = (weights * states).sum(dim=1)
        inputs = torch.cat([self.embedding(words), context], dim=1).unsqueeze(1)
        outputs, last = self.gru(inputs, state.unsqueeze(0))
        return torch.log_softmax(self.output(outputs[:, 0]), dim=1), last[0]


MODELS = {"luong": (LuongEncoder, LuongDecoder), "bahdanau": (BahdanauEncoder, BahdanauDecoder)}


def updates(loop: str, pairs: EncodedPairs, src_size: int, tgt_size: int) -> Iterator[int]:
    """Train on random batches endlessly.

    Yields:
        Target tokens of each update, without padding; the loss is over all positions.
    """
    encoder, decoder = MODELS[loop][0](src_size), MODELS[loop][1](tgt_size)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.001)
    size, padded = BATCH_SIZES[loop], loop == "bahdanau"

    def batch(side: Sequences, indices: list[int]) -> Tensor:
        chosen = [side[index].tolist() for index in indices]
        longest = int(side.lengths.max()) if padded else len(chosen[0])
        return torch.tensor([[*ids, EOS_ID] + [PAD_ID] * (longest - len(ids)) for ids in chosen])

    while True:
        indices = random.choices(range(len(pairs)), k=size)
        source, target = batch(pairs.src, indices), batch(pairs.tgt, indices)
        optimizer.zero_grad()
        states, state = encoder(source)
        words, loss, forced = torch.full((size,), BOS_ID), torch.zeros(()), torch.rand(size) < FORCING
        for position in range(target.size(1)):
            log_probs, state = decoder(words, state, states)
            loss = loss + nn.functional.nll_loss(log_probs, target[:, position])
            words = torch.where(forced, target[:, position], log_probs.argmax(dim=1))
            if padded:
                forced = torch.rand(size) < FORCING
        torch.autograd.backward(loss / target.size(1))
        for module in (encoder, decoder) if padded else ():
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        yield sum(len(pairs.tgt[index]) + 1 for index in indices)


if __name__ == "__main__":
    main()
