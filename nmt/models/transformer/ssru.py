"""SSRU: a recurrence without products of the hidden state, in place of a decoder's self-attention."""

import torch
from torch import Tensor

from nmt.config import TransformerSection
from nmt.layers.kernels.stepwise import StepLinear
from nmt.models.transformer.cache import RowState
from nmt.models.transformer.layer import History


class SSRU(History[RowState]):
    """Simpler simple recurrent unit (Kim et al., 2019, section 3.2): h = ReLU(c).

    f_t = sigmoid(W_f x_t + b);  c_t = f_t c_{t-1} + (1 - f_t) W x_t. No matrix multiplies c or h, so that the products
    of all positions are one call. Its state is c, [R, D].

    Args:
        section: Sizes.
    """

    def __init__(self, section: TransformerSection) -> None:
        super().__init__()
        self.candidate = StepLinear(section.hidden_size, section.hidden_size, bias=False)
        self.forget = StepLinear(section.hidden_size, section.hidden_size)

    def forward(self, inputs: Tensor) -> Tensor:
        """See `History.forward`."""
        gates = self.forget(inputs).sigmoid()
        candidates = (1 - gates) * self.candidate(inputs)
        cells = [candidates[:, 0]]
        for gate, candidate in zip(gates.unbind(1)[1:], candidates.unbind(1)[1:], strict=True):
            cells.append(torch.addcmul(candidate, gate, cells[-1]))
        return torch.stack(cells, dim=1).relu()

    def start(self, like: Tensor) -> RowState:
        """See `History.start`."""
        return RowState(torch.zeros_like(like))

    def step(self, inputs: Tensor, state: RowState, allowed: Tensor) -> tuple[Tensor, RowState]:
        """See `History.step`."""
        gate = self.forget(inputs).sigmoid()
        cells = gate * state.vectors + (1 - gate) * self.candidate(inputs)
        return cells.relu(), RowState(cells)
