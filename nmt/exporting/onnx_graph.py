"""Building a graph of ONNX operators (https://onnx.ai/onnx/operators), node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partialmethod
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

OPERATORS = 20
"""Version of the operators: the first with GELU."""
FORMAT = 10
"""Version of the file."""
# Number formats, `onnx.TensorProto.DataType`.
FLOAT = 1
INT32 = 6
INT64 = 7
BOOL = 9
DOUBLE = 11


class Value:
    """A value of a graph: an input, or the result of an operator.

    Args:
        graph: The graph.
        name: Its name there.
    """

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph = graph
        self.name = name

    def op(self, kind: str, *others: Operand, **attributes: Any) -> Value:
        """The result of an operator on the value and other operands."""
        return self.graph.op(kind, self, *others, **attributes)[0]

    def cast(self, number_format: int) -> Value:
        """The value in another number format."""
        return self.op("Cast", to=number_format)

    def reshape(self, *shape: int) -> Value:
        """The value in another shape; 0 keeps a size, -1 is the rest."""
        return self.op("Reshape", shape)

    def transpose(self, *axes: int) -> Value:
        """The value with its axes in another order."""
        return self.op("Transpose", perm=axes)

    def unsqueeze(self, *axes: int) -> Value:
        """The value with further axes of size 1."""
        return self.op("Unsqueeze", axes)

    __add__: partialmethod[Value] = partialmethod(op, "Add")
    __sub__: partialmethod[Value] = partialmethod(op, "Sub")
    __mul__: partialmethod[Value] = partialmethod(op, "Mul")
    __truediv__: partialmethod[Value] = partialmethod(op, "Div")
    __matmul__: partialmethod[Value] = partialmethod(op, "MatMul")


Operand = Value | Tensor | int | float | Sequence[int] | None
"""A value or a constant; None is left out."""


class Port(NamedTuple):
    """A value that enters or leaves a graph.

    Attributes:
        value: The value inside the graph.
        shape: Sizes, and names of sizes that are known only when the graph runs.
        number_format: One of those above.
    """

    value: Value
    shape: Sequence[int | str]
    number_format: int = FLOAT


class Graph:
    """An ONNX graph in the making.

    Args:
        name: Its name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: dict[str, Port] = {}
        self.outputs: dict[str, Port] = {}
        self.nodes: list[Any] = []
        self.constants: dict[tuple[Any, ...], tuple[str, Tensor]] = {}

    def input(self, name: str, shape: Sequence[int | str], number_format: int = FLOAT) -> Value:
        """Add an input; see `Port`."""
        self.inputs[name] = Port(Value(self, name), shape, number_format)
        return self.inputs[name].value

    def op(self, kind: str, *operands: Operand, outputs: int = 1, **attributes: Any) -> list[Value]:
        """Add an operator."""
        from onnx import helper

        names = [f"{kind.lower()}_{len(self.nodes)}_{output}" for output in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(map(self._name, operands)), names, **attributes))
        return [Value(self, name) for name in names]

    def _name(self, operand: Operand) -> str:
        """The name of an operand. A constant is stored once: integers as int64, other numbers as float32."""
        if operand is None:
            return ""
        if isinstance(operand, Value):
            return operand.name
        tensor = torch.as_tensor(operand, dtype=torch.int64 if isinstance(operand, Sequence) else None).detach()
        content = (tensor.data_ptr(), *tensor.stride()) if isinstance(operand, Tensor) else tensor.tolist()
        key = str(content), tensor.dtype, *tensor.shape
        return self.constants.setdefault(key, (f"constant_{len(self.constants)}", tensor))[0]

    def write(self, path: Path, metadata: Mapping[str, str] | None = None) -> None:
        """Check the graph, and write it with its constants and whatever text a program wants to find in the file.

        Raises:
            onnx.checker.ValidationError: It is not valid.
        """
        from onnx import checker, helper, numpy_helper, save_model

        inputs, outputs = (
            [helper.make_tensor_value_info(name, port.number_format, port.shape) for name, port in ports.items()]
            for ports in (self.inputs, self.outputs)
        )
        named = [helper.make_node("Identity", [port.value.name], [name]) for name, port in self.outputs.items()]
        constants = [numpy_helper.from_array(tensor.numpy(), name) for name, tensor in self.constants.values()]
        graph = helper.make_graph(self.nodes + named, self.name, inputs, outputs, constants)
        operators = [helper.make_opsetid("", OPERATORS)]
        model = helper.make_model(graph, producer_name="nmt", ir_version=FORMAT, opset_imports=operators)
        helper.set_model_props(model, dict(metadata or {}))
        checker.check_model(model, full_check=True)
        save_model(model, path)
