"""The systems of the benchmarks: standard models in several toolkits."""

from dataclasses import dataclass
from typing import Literal

Toolkit = Literal["nmt", "OpenNMT-py", "JoeyNMT", "Marian", "CTranslate2"]
Precision = Literal["default", "fast", "bf16", "int8"]
PEERS: tuple[Toolkit, ...] = ("OpenNMT-py", "JoeyNMT")
"""Toolkits that have the standard models."""

UPDATES_PER_REPORT = 20
"""Updates between two reports of the speed, in every toolkit."""


@dataclass(frozen=True)
class System:
    """One row of the benchmark.

    Attributes:
        name: Name for `--only`.
        toolkit: The toolkit.
        kind: `luong`, `luong_feeding`, `bahdanau`, `transformer`, `ssru`, `hybrid` or `conditional`; rows of the same
            kind and cell are compared.
        description: Attention and feeding in the toolkit's own terms, or the family.
        cell: `lstm` or `gru`; empty without one.
        precision: `default`: as shipped; `fast`: fp32 products by the kernels of
            `torch.set_float32_matmul_precision("medium")`; `bf16`: autocast; `int8`: weights of 8 bits.
    """

    name: str
    toolkit: Toolkit
    kind: str
    description: str
    cell: str
    precision: Precision


DESCRIPTIONS: dict[Toolkit, dict[str, str]] = {
    "nmt": {
        "luong": "general, no feeding",
        "luong_feeding": "general, input feeding",
        "bahdanau": "additive, Bahdanau order",
        "transformer": "Transformer",
        "ssru": "Transformer, SSRU decoder",
        "hybrid": "general, self-attentive encoder",
    },
    "OpenNMT-py": {
        "luong": "general, no feeding",
        "luong_feeding": "general, input feeding",
        "bahdanau": "mlp, input feeding",
        "transformer": "Transformer",
    },
    "JoeyNMT": {
        "luong": "luong, no feeding",
        "luong_feeding": "luong, input feeding",
        "bahdanau": "bahdanau, input feeding",
        "transformer": "Transformer",
    },
}
"""Kinds of each toolkit."""


def list_systems() -> list[System]:
    """All rows of training, ours first.

    The same kind is nearly the same work per token in all toolkits: for `bahdanau` all three compute an additive score
    in a loop; ours feeds the context, the others feed the attentional vector.
    """
    rows: list[tuple[Toolkit, str, str, Precision]] = []
    for cell in ("lstm", "gru"):
        rows += [("nmt", kind, cell, precision) for kind in ("luong", "bahdanau") for precision in ("default", "bf16")]
    rows.append(("nmt", "luong_feeding", "lstm", "default"))
    for kind, cell in (("transformer", ""), ("ssru", ""), ("hybrid", "lstm")):
        rows += [("nmt", kind, cell, precision) for precision in ("default", "bf16")]
    for toolkit in PEERS:
        for kind in DESCRIPTIONS[toolkit]:
            cell = "" if kind == "transformer" else "lstm"
            rows += [(toolkit, kind, cell, precision) for precision in ("default", "fast")]
        rows += [(toolkit, kind, "gru", "default") for kind in ("luong", "bahdanau")]
    systems = []
    for toolkit, kind, cell, precision in rows:
        name = "-".join(filter(None, [toolkit.lower(), kind, cell, precision.replace("default", "")]))
        systems.append(System(name, toolkit, kind, DESCRIPTIONS[toolkit][kind], cell, precision))
    marian = System("marian", "Marian", "conditional", "s2s: conditional cell, encoder 2x512", "lstm", "default")
    return [*systems, marian]
