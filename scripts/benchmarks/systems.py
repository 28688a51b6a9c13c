"""The systems of the training benchmark: one standard model in several toolkits."""

from dataclasses import dataclass
from typing import Literal

Toolkit = Literal["nmt", "OpenNMT-py", "JoeyNMT", "Marian"]
Precision = Literal["default", "fast", "bf16"]

UPDATES_PER_REPORT = 20
"""Updates between two reports of the speed, in every toolkit."""


@dataclass(frozen=True)
class System:
    """One row of the benchmark.

    Attributes:
        name: Name for `--only`.
        toolkit: The toolkit.
        kind: `luong`, `luong_feeding`, `bahdanau` or `conditional`; rows of the same kind and cell are compared.
        description: Attention and feeding in the toolkit's own terms.
        cell: `lstm` or `gru`.
        precision: `default`: as shipped; `fast`: fp32 products by the kernels of
            `torch.set_float32_matmul_precision("medium")`; `bf16`: autocast.
    """

    name: str
    toolkit: Toolkit
    kind: str
    description: str
    cell: str
    precision: Precision


KINDS = ("luong", "luong_feeding", "bahdanau")
DESCRIPTIONS: dict[Toolkit, tuple[str, str, str]] = {
    "nmt": ("general, no feeding", "general, input feeding", "additive, Bahdanau order"),
    "OpenNMT-py": ("general, no feeding", "general, input feeding", "mlp, input feeding"),
    "JoeyNMT": ("luong, no feeding", "luong, input feeding", "bahdanau, input feeding"),
}


def list_systems() -> list[System]:
    """All rows, ours first.

    The same kind is nearly the same work per token in all toolkits: for `bahdanau` all three compute an additive score
    in a loop; ours feeds the context, the others feed the attentional vector.
    """
    rows: list[tuple[Toolkit, str, str, Precision]] = []
    for cell in ("lstm", "gru"):
        rows += [("nmt", kind, cell, precision) for kind in ("luong", "bahdanau") for precision in ("default", "bf16")]
    rows.append(("nmt", "luong_feeding", "lstm", "default"))
    peers: tuple[Toolkit, ...] = ("OpenNMT-py", "JoeyNMT")
    for toolkit in peers:
        for kind in KINDS:
            rows += [(toolkit, kind, "lstm", precision) for precision in ("default", "fast")]
        rows += [(toolkit, kind, "gru", "default") for kind in ("luong", "bahdanau")]
    systems = []
    for toolkit, kind, cell, precision in rows:
        name = "-".join([toolkit.lower(), kind, cell, *([precision] if precision != "default" else [])])
        systems.append(System(name, toolkit, kind, DESCRIPTIONS[toolkit][KINDS.index(kind)], cell, precision))
    marian = System("marian", "Marian", "conditional", "s2s: conditional cell, encoder 2x512", "lstm", "default")
    return [*systems, marian]
