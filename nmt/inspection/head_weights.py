"""The weights of every attention head while a model reads a target."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from nmt.corpus.batching import pad
from nmt.layers.self_attention import recorded_weights
from nmt.translation.translator import Translator

Part = Literal["encoder", "decoder"]
"""Where self-attention is."""


@dataclass(frozen=True)
class HeadWeights:
    """The weights of a sentence and a target.

    Attributes:
        own: Self-attention of each layer: of the encoder over the source with EOS, [heads, S, S]; of the decoder over
            BOS and the target without EOS, [heads, T, T]. Without layers where there is none.
        source: Attention to the source, in the order of `Decoder.heads`, [T, heads, S].
    """

    own: dict[Part, list[Tensor]]
    source: Tensor


@torch.inference_mode()
def read_heads(translator: Translator, src: list[int], tgt: list[int]) -> HeadWeights:
    """Let a model read a target.

    Args:
        translator: A single model.
        src: Source ids without EOS.
        tgt: Target ids without EOS, T - 1 of them.
    """
    model = translator.model
    with recorded_weights(model.encoder) as of_encoder, recorded_weights(model.decoder) as of_decoder:
        encoded = model.encode(pad([src], suffix=True).to(model.device), torch.tensor([len(src) + 1]))
        output = model.decoder(pad([tgt], prefix=True).to(model.device), encoded)
    own: dict[Part, list[Tensor]] = {"encoder": of_encoder, "decoder": of_decoder}
    own = {part: [weights[0].float().cpu() for weights in layers] for part, layers in own.items()}
    return HeadWeights(own, output.alignments[0].float().cpu())
