"""Terms of the loss that compare predictions for a changed input with those for the input as it is."""

import torch
from torch import Tensor, nn

from nmt.config import ConsistencySection, SimCutSection
from nmt.corpus.batching import Batch
from nmt.models.base import Cut, Task, WordChooser
from nmt.models.seq2seq import Seq2Seq
from nmt.text.vocabulary import EOS_ID


class SimCut(nn.Module):
    """SimCut (Gao et al., 2022): a model whose loss includes how far cut input changes its predictions.

    CE(x, y) + a KL(f(x, y) || f(x_cut, y_cut)), averaged over target words. x_cut and y_cut are the source and the
    decoder's input with each word's vector 0 with a fixed probability, but for the end of the source and the start of
    the target. Both readings have dropout of their own; cross-entropy is of the first only. The gradient passes
    through both sides of KL: the paper's introduction calls that the key, and the program of its first author does so
    (gpengzhi/Bi-SimCut, label_smoothed_cross_entropy_with_simcut.py). `stop_gradient` keeps it from the first side.

    Args:
        model: The model, whose weights these are.
        section: Weight of the term, and how much is cut.
    """

    def __init__(self, model: Seq2Seq, section: SimCutSection) -> None:
        super().__init__()
        self.model = model
        self.section = section

    def forward(self, batch: Batch, choose: WordChooser | None = None, label_smoothing: float = 0.0) -> Tensor:
        """The summed loss of one batch, which the model reads twice at once; see `Task.forward`.

        Args:
            batch: Pairs.
            choose: None: both readings are of the reference.
            label_smoothing: Share of the probability that is spread evenly over all words, in the cross-entropy.
        """
        cut = draw_cut(batch, self.section.share)
        kept = Cut(*map(torch.zeros_like, cut))
        readings = Cut(*(torch.cat(sides) for sides in zip(kept, cut, strict=True)))
        readouts, targets, penalties = self.model.readouts(batch.twice(), choose, readings)  # [2 * P, ...]
        loss = self.model.decoder.output.consistent_loss(
            readouts,
            targets[: batch.num_tokens],
            label_smoothing,
            self.section.weight,
            stop_gradient=self.section.stop_gradient,
        )
        return loss + penalties[: batch.num_tokens].sum()


def draw_cut(batch: Batch, share: float) -> Cut:
    """Draw the words of a batch to cut, from torch's global CPU generator.

    Args:
        batch: Pairs.
        share: Probability of cutting a word; EOS of sources and the first word of decoder inputs are never cut.
    """
    src, tgt_in = (
        (torch.rand(words.shape) < share).to(words.device, non_blocking=True) for words in (batch.src, batch.tgt_in)
    )
    tgt_in[:, 0] = False
    return Cut(src & (batch.src != EOS_ID), tgt_in)


def with_consistency(model: Task, section: ConsistencySection) -> nn.Module:
    """The module that training calls in place of a model, with the same arguments: the model without such a term."""
    match section.name:
        case "none":
            return model
        case "simcut":
            assert isinstance(model, Seq2Seq)
            return SimCut(model, section)
