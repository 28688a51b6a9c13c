"""Windows: which source positions a step may attend to (Luong et al., 2015, sections 3.1 and 3.2)."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from nmt.layers.attention.source_memory import AttentionState, Memory
from nmt.layers.kernels.activation import tanh
from nmt.layers.kernels.stepwise import StepLinear


class Window(nn.Module, ABC):
    """Source positions that a step attends to, and how their weights are changed."""

    paper: ClassVar[str]

    def initial_state(self, memory: Memory) -> AttentionState:
        """The state before the first target token."""
        return {}

    def unroll(self, state: AttentionState, number: int) -> AttentionState:
        """The states of `number` steps from this one on, [B, number, ...] each."""
        return {}

    def advance(self, state: AttentionState) -> AttentionState:
        """The state of the next step."""
        return {}

    @abstractmethod
    def locate(self, query: Tensor, memory: Memory, state: AttentionState) -> tuple[Tensor, Tensor]:
        """Find the window of each query.

        Args:
            query: Decoder states, [B, N, query_size].
            memory: The sources.
            state: State of the step.

        Returns:
            Centres, [B, N, 1], ignored by windows without a centre; and a mask, [B, N or 1, S], True at the positions
            in the window: at least one real token, and no padding.
        """

    def reweigh(self, weights: Tensor, centres: Tensor) -> Tensor:
        """Change normalised weights [B, heads, N, S], given the centres [B, N, 1]."""
        return weights


class GlobalWindow(Window):
    """All source positions (Luong et al., 2015, section 3.1)."""

    paper = "Luong et al., 2015, section 3.1"

    def locate(self, query: Tensor, memory: Memory, state: AttentionState) -> tuple[Tensor, Tensor]:
        """Every real token."""
        return query[..., :1], memory.mask.unsqueeze(1)  # it has no centre: a placeholder of the right shape


class MonotonicWindow(Window):
    """Local-m (Luong et al., 2015, section 3.2): positions around p_t = min(t, S - 1).

    Both t and positions count from 0, and S is the sentence's own length.

    Args:
        radius: Positions on each side; D in the paper.
    """

    paper = "Luong et al., 2015, section 3.2"

    def __init__(self, radius: int) -> None:
        super().__init__()
        self.radius = radius

    def initial_state(self, memory: Memory) -> AttentionState:
        """Step 0 for every sentence, [B, 1]."""
        return {"step": memory.lengths.new_zeros(memory.lengths.size(0), 1)}

    def unroll(self, state: AttentionState, number: int) -> AttentionState:
        """Steps t, t + 1, ..., [B, number]."""
        return {"step": state["step"] + torch.arange(number, device=state["step"].device)}

    def advance(self, state: AttentionState) -> AttentionState:
        """Step t + 1."""
        return {"step": state["step"] + 1}

    def locate(self, query: Tensor, memory: Memory, state: AttentionState) -> tuple[Tensor, Tensor]:
        """Positions at most `radius` from p_t; p_t itself is always a real token."""
        centres = torch.minimum(state["step"], memory.lengths.unsqueeze(1) - 1).unsqueeze(2)  # [B, N, 1]
        return centres.to(query.dtype), _around(centres, memory.mask, self.radius)


class PredictiveWindow(Window):
    """Local-p (Luong et al., 2015, eq. 9-10): positions around p_t = S sigmoid(v^T tanh(W h_t)).

    The weights in the window are multiplied by exp(-(j - p_t)^2 / (2 sigma^2)), sigma = radius / 2, after the
    softmax and not normalised again, so they sum to at most 1 and p_t has a gradient. S is the sentence's own length.

    Args:
        query_size: Size of a decoder state.
        radius: Positions on each side; D in the paper.
    """

    paper = "Luong et al., 2015, eq. 9-10"

    def __init__(self, query_size: int, radius: int) -> None:
        super().__init__()
        self.radius = radius
        self.hidden = StepLinear(query_size, query_size, bias=False)
        self.position = StepLinear(query_size, 1, bias=False)

    def locate(self, query: Tensor, memory: Memory, state: AttentionState) -> tuple[Tensor, Tensor]:
        """Positions at most `radius` from p_t, which is between 0 and S: one of them is always a real token."""
        share = torch.sigmoid(self.position(tanh(self.hidden(query))))  # [B, N, 1]
        exact = torch.promote_types(share.dtype, torch.float32)  # bfloat16 rounds 259 to 260, so p_t could exceed S
        centres = share.to(exact) * memory.lengths.view(-1, 1, 1)
        return centres, _around(centres, memory.mask, self.radius)

    def reweigh(self, weights: Tensor, centres: Tensor) -> Tensor:
        """Multiply by the Gaussian around p_t."""
        positions = torch.arange(weights.size(-1), device=weights.device, dtype=weights.dtype)
        distance = positions - centres.unsqueeze(1)  # [B, 1, N, S]
        return weights * torch.exp(-2 * (distance / self.radius) ** 2)


def _around(centres: Tensor, mask: Tensor, radius: int) -> Tensor:
    """Mask of real tokens at most `radius` from the centres: [B, N, 1], [B, S] -> [B, N, S]."""
    positions = torch.arange(mask.size(1), device=mask.device)
    return ((positions - centres).abs() <= radius) & mask.unsqueeze(1)
