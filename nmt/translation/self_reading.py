"""How the words of a source read each other."""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.corpus.batching import pad
from nmt.layers.self_attention import recorded_weights
from nmt.translation.translator import Translator


@torch.inference_mode()
def read_self_attention(translator: Translator, tokens: Sequence[str]) -> list[Tensor]:
    """Self-attention of the encoder over a source, layer by layer: [heads, S, S], with its end; none if recurrent.

    Args:
        translator: A single model.
        tokens: The source without its end.
    """
    model = translator.model
    src = pad([translator.processor.src_vocabulary.encode(tokens)], suffix=True)
    with recorded_weights(model.encoder) as layers:
        model.encode(src.to(model.device), torch.tensor([src.size(1)]))
    return [weights[0].float().cpu() for weights in layers]
