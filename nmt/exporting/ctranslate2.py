"""CTranslate2, which runs Transformers (https://github.com/OpenNMT/CTranslate2)."""

from collections.abc import Iterator

from nmt.config import Config
from nmt.exporting.formats import Obstacle


def find_obstacles(config: Config) -> Iterator[Obstacle]:
    """Find what CTranslate2 cannot hold of a model, and settings of the search by which it would rank otherwise.

    It divides log-probabilities by length ** length_penalty, where the length counts EOS (`src/decoding.cc`), which is
    `length_norm: average` with the same penalty. A position without a vector is an error there. Tying, unlike sizes and
    both places of the layer norm are no obstacle: a linear layer beside an embedding becomes part of it.
    """
    model, decode = config.model, config.decode
    if model.encoder.kind != "self_attention":
        yield Obstacle(
            "model.encoder.kind", f"{model.encoder.kind} encoders do not run in CTranslate2; put self_attention"
        )
    elif (positions := model.encoder.learned_positions) and positions <= (most := config.text.max_length):
        few = f"{positions:,} positions do not hold text.max_length, {most:,} tokens, and the end of the sentence"
        yield Obstacle("model.encoder.learned_positions", f"{few}; put null, or {most + 1:,} or more")
    if model.decoder.kind != "transformer":
        yield Obstacle(
            "model.decoder.kind", f"{model.decoder.kind} decoders do not run in CTranslate2; put transformer"
        )
    elif (positions := model.decoder.learned_positions) and positions < decode.max_length:
        few = f"{positions:,} positions do not hold decode.max_length, {decode.max_length:,} tokens"
        yield Obstacle("model.decoder.learned_positions", f"{few}; put null, or {decode.max_length:,} or more")
    if model.output_norm is not None:
        # Words' vectors could be stored with that norm, but readouts get it by a division, which no linear layer is.
        yield Obstacle("model.output_norm", f"{model.output_norm} is no part of a linear layer; put null")
    if decode.length_penalty and decode.length_norm != "average":
        yield Obstacle("decode.length_norm", f"CTranslate2 does not divide scores by {decode.length_norm}; put average")
    if decode.coverage_penalty:
        yield Obstacle(
            "decode.coverage_penalty", "source positions without attention cost nothing in CTranslate2; put 0"
        )
    if decode.min_length_ratio:
        yield Obstacle("decode.min_length_ratio", "CTranslate2 has no such limit; put 0, or use decode.min_length")
