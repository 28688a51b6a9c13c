"""Training loops as in tutorials on attention, in plain PyTorch, to compare their speed.

Two set-ups on encoded pairs of this project: an LSTM with Luong's concat attention and input feeding that trains on
one sentence pair at a time, and a GRU with additive attention in Bahdanau's order that trains on batches of 64, all
padded to the longest sentence of the split. As in the tutorials, both loop over the target with an output layer and a
loss per step. Unlike in some tutorials, all source positions are scored at once.

python -m benchmarks.tutorial_loops luong|bahdanau --data DIR --updates 150
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from nmt.corpus.dataset import EncodedPairs, open_data
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
    sizes = len(data.src_vocabulary), len(data.tgt_vocabulary)
    updates = {"luong": luong_updates, "bahdanau": bahdanau_updates}[arguments.loop](data.train, *sizes)
    begin, tokens = time.perf_counter(), 0
    for number in range(1, arguments.updates + 1):
        tokens += next(updates)
        if number % arguments.report_every == 0:
            speed = tokens / (time.perf_counter() - begin)
            print(json.dumps({"update": number, "tokens_per_second": round(speed, 1)}), flush=True)
            begin, tokens = time.perf_counter(), 0


def read_speeds(log: str) -> list[float]:
    """Target tokens per second of each report printed by `main`."""
    return [json.loads(line)["tokens_per_second"] for line in log.splitlines() if line.startswith("{")]


def luong_updates(pairs: EncodedPairs, src_size: int, tgt_size: int) -> Iterator[int]:
    """Train on random pairs endlessly: update, attend, feed the attentional vector back.

    Yields:
        Target tokens of each update.
    """
    size = 256

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(src_size, size)
            self.lstm = nn.LSTM(size, size)

        def forward(self, words: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
            """[S] -> states [S, 1, H], last state."""
            states, last = self.lstm(self.embedding(words).unsqueeze(1))
            return states, last

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(tgt_size, size)
            self.lstm = nn.LSTM(2 * size, size)
            self.attention = nn.Linear(2 * size, size)
            self.energy = nn.Linear(size, 1, bias=False)
            self.combination = nn.Linear(2 * size, size)
            self.output = nn.Linear(size, tgt_size)

        def forward(
            self, word: Tensor, feedback: Tensor, state: tuple[Tensor, Tensor], states: Tensor
        ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
            """Word [1], feedback [1, H], state, encoder states [S, 1, H] -> log-probabilities, new feedback, state."""
            inputs = torch.cat([self.embedding(word), feedback], dim=1).unsqueeze(0)
            hidden, state = self.lstm(inputs, state)
            both = torch.cat([hidden.expand(len(states), -1, -1), states], dim=2)  # [S, 1, 2 * H]
            weights = torch.softmax(self.energy(torch.tanh(self.attention(both))), dim=0)
            context = (weights * states).sum(dim=0)
            feedback = torch.tanh(self.combination(torch.cat([context, hidden[0]], dim=1)))
            return torch.log_softmax(self.output(feedback), dim=1), feedback, state

    encoder, decoder = Encoder(), Decoder()
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.001)
    while True:
        index = random.randrange(len(pairs))
        source = torch.tensor([*pairs.src[index].tolist(), EOS_ID])
        target = torch.tensor([*pairs.tgt[index].tolist(), EOS_ID])
        optimizer.zero_grad()
        states, state = encoder(source)
        word, feedback, loss = torch.tensor([BOS_ID]), torch.zeros(1, size), torch.zeros(())
        forced = random.random() < FORCING
        for position in range(len(target)):
            log_probs, feedback, state = decoder(word, feedback, state, states)
            expected = target[position : position + 1]
            loss = loss + nn.functional.nll_loss(log_probs, expected)
            word = expected if forced else log_probs.argmax(dim=1)
        torch.autograd.backward(loss / len(target))
        optimizer.step()
        yield len(target)


def bahdanau_updates(pairs: EncodedPairs, src_size: int, tgt_size: int) -> Iterator[int]:
    """Train on random batches endlessly: attend with the last state, then update.

    Yields:
        Target tokens of each update, without padding; the loss is over all positions.
    """
    size = 128

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(src_size, size)
            self.gru = nn.GRU(size, size, batch_first=True, bidirectional=True)
            self.bridge = nn.Linear(size, size)

        def forward(self, words: Tensor) -> tuple[Tensor, Tensor]:
            """[B, S] -> states [B, S, 2 * H], first decoder state [B, H] from the backward direction."""
            states, last = self.gru(self.embedding(words))
            return states, torch.tanh(self.bridge(last[1]))

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(tgt_size, size)
            self.query = nn.Linear(size, size)
            self.key = nn.Linear(2 * size, size)
            self.energy = nn.Linear(size, 1)
            self.gru = nn.GRU(3 * size, size, batch_first=True)
            self.output = nn.Linear(size, tgt_size)

        def forward(self, words: Tensor, state: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
            """Words [B], state [B, H], encoder states [B, S, 2 * H] -> log-probabilities [B, V], new state."""
            hidden = torch.tanh(self.query(state).unsqueeze(1) + self.key(states))
            weights = torch.softmax(self.energy(hidden), dim=1)
            context = (weights * states).sum(dim=1)
            inputs = torch.cat([self.embedding(words), context], dim=1).unsqueeze(1)
            outputs, last = self.gru(inputs, state.unsqueeze(0))
            return torch.log_softmax(self.output(outputs[:, 0]), dim=1), last[0]

    def padded(sequences: list[list[int]], length: int) -> Tensor:
        return torch.tensor([[*ids, EOS_ID] + [PAD_ID] * (length - len(ids)) for ids in sequences])

    longest = int(pairs.src.lengths.max()), int(pairs.tgt.lengths.max())
    encoder, decoder = Encoder(), Decoder()
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.001)
    while True:
        indices = random.choices(range(len(pairs)), k=BATCH_SIZES["bahdanau"])
        source = padded([pairs.src[index].tolist() for index in indices], longest[0])
        target = padded([pairs.tgt[index].tolist() for index in indices], longest[1])
        optimizer.zero_grad()
        states, state = encoder(source)
        words, loss = torch.full((len(indices),), BOS_ID), torch.zeros(())
        for position in range(target.size(1)):
            log_probs, state = decoder(words, state, states)
            loss = loss + nn.functional.nll_loss(log_probs, target[:, position])
            forced = torch.rand(len(indices)) < FORCING
            words = torch.where(forced, target[:, position], log_probs.argmax(dim=1))
        torch.autograd.backward(loss / target.size(1))
        for module in (encoder, decoder):
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        yield int((target != PAD_ID).sum())


if __name__ == "__main__":
    main()
