"""An ONNX graph being written: nodes, initializers, and sizes computed from inputs' shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, Symbol, dim_text
from unity.ir.dtype import Array, DType
from unity.ir.prim_expr import Binary, Imm, PrimExpr, SizeVar
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import TensorType, TupleType, Type

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

Arg: TypeAlias = "str | tuple[str, ...] | tuple[Dim, ...]"
"""An operand: a value's name, the names of a tuple's fields, or a shape."""
NodeAttr: TypeAlias = "int | float | str | Sequence[int] | Sequence[float]"

_ARITHMETIC = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "floordiv": "Div", "min": "Min", "max": "Max",
}  # fmt: skip


class Writer:
    """Nodes in order, under fresh names.

    Attributes:
        nodes: What was written.
        initializers: Constants.
        sources: For each symbol the input and axis that it is the size of.
    """

    def __init__(self, sources: Mapping[Symbol, tuple[str, int]]) -> None:
        self.nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []
        self.sources = sources
        self._count = 0
        self._constants: dict[int, tuple[Array, str]] = {}
        self._sizes: dict[Dim, str] = {}

    def name(self, hint: str = "v") -> str:
        """A fresh name."""
        self._count += 1
        return f"{hint}_{self._count}"

    def node(self, op: str, inputs: Sequence[str], **attrs: NodeAttr) -> str:
        """A node with one output."""
        return self.many(op, inputs, 1, **attrs)[0]

    def many(self, op: str, inputs: Sequence[str], outputs: int, **attrs: NodeAttr) -> list[str]:
        """A node with several outputs."""
        from onnx import helper

        names = [self.name(op.lower()) for _ in range(outputs)]
        self.nodes.append(
            helper.make_node(op, list(inputs), names, None, None, None, None, **attrs)
        )
        return names

    def constant(self, data: Array) -> str:
        """A constant; the same data is written once."""
        from onnx import numpy_helper

        known = self._constants.get(id(data))
        if known is None:
            name = self.name("c")
            contiguous = np.ascontiguousarray(data).reshape(data.shape)
            self.initializers.append(numpy_helper.from_array(contiguous, name))
            known = self._constants[id(data)] = (data, name)
        return known[1]

    def ints(self, values: Sequence[int]) -> str:
        """A vector of int64."""
        return self.constant(np.array(list(values), np.int64))

    def scalar(self, value: float, dtype: DType) -> str:
        """A number of a dtype."""
        return self.constant(np.array(value, dtype.numpy))

    def vector(self, dims: Sequence[Dim]) -> str:
        """Sizes as a vector of int64, computed from the inputs' shapes where they are symbolic."""
        if all(isinstance(d, int) for d in dims):
            return self.ints([d for d in dims if isinstance(d, int)])
        return self.node("Concat", [self.size(d) for d in dims], axis=0)

    def size(self, value: Dim) -> str:
        """One size as a vector of one element."""
        if isinstance(value, int):
            return self.ints([value])
        if value not in self._sizes:
            self._sizes[value] = self._computed(to_prim_expr(value), value)
        return self._sizes[value]

    def _computed(self, e: PrimExpr, value: Dim) -> str:
        match e:
            case Imm(int() as number):
                return self.ints([number])
            case SizeVar(name):
                for symbol, (source, axis) in self.sources.items():
                    if symbol.name == name:
                        shape = self.node("Shape", [source])
                        return self.node("Gather", [shape, self.ints([axis])], axis=0)
            case Binary(op, a, b) if op in _ARITHMETIC:
                parts = [self._computed(a, value), self._computed(b, value)]
                return self.node(_ARITHMETIC[op], parts)  # sizes are not negative: Div is floor
            case _:
                pass
        raise UnityError(f"no input tells the size {dim_text(value)}")


class OpNode:
    """One call of an operator, its operands named.

    Attributes:
        w: Where to write.
        args: The operands.
        types: Their types.
        attrs: The call's attributes.
        result: The result's type.
    """

    def __init__(
        self, w: Writer, args: Sequence[Arg], types: Sequence[Type], attrs: Attrs, result: Type
    ) -> None:
        self.w = w
        self.args = list(args)
        self.types = list(types)
        self.attrs = attrs
        self.result = result

    def input(self, index: int) -> str:
        """An operand that is a tensor."""
        found = self.args[index]
        assert isinstance(found, str)
        return found

    @property
    def inputs(self) -> list[str]:
        """All operands, which are tensors."""
        return [self.input(i) for i in range(len(self.args))]

    def tensor(self, index: int) -> TensorType:
        """An operand's type."""
        found = self.types[index]
        assert isinstance(found, TensorType)
        return found

    def dims(self, index: int) -> tuple[Dim, ...]:
        """An operand's shape."""
        shape = self.tensor(index).shape
        if not isinstance(shape, tuple):
            raise UnityError("a shape of unknown dims")
        return shape

    def rank(self, index: int = 0) -> int:
        """An operand's rank."""
        return len(self.dims(index))

    def dtype(self, index: int = 0) -> DType:
        """An operand's dtype."""
        found = self.tensor(index).dtype
        assert found is not None
        return found

    @property
    def out(self) -> TensorType:
        """The result's type, which is one tensor."""
        assert isinstance(self.result, TensorType)
        return self.result

    @property
    def out_dims(self) -> tuple[Dim, ...]:
        """The result's shape."""
        if not isinstance(self.out.shape, tuple):
            raise UnityError("a result of unknown dims")
        return self.out.shape

    @property
    def outputs(self) -> int:
        """How many tensors the result is."""
        return len(self.result.fields) if isinstance(self.result, TupleType) else 1

    def integer(self, name: str) -> int:
        """An attribute that is an int."""
        value = self.attrs[name]
        assert isinstance(value, int), (name, value)
        return value

    def number(self, name: str) -> float:
        """An attribute that is a number."""
        value = self.attrs[name]
        assert isinstance(value, int | float), (name, value)
        return float(value)

    def flag(self, name: str) -> bool:
        """An attribute that is a bool."""
        return bool(self.attrs[name])

    def ints(self, name: str, count: int | None = None) -> list[int]:
        """An attribute that holds ints; one int stands for `count` of it."""
        value = self.attrs[name]
        if isinstance(value, int):
            return [value] * (count or 1)
        assert isinstance(value, tuple), (name, value)
        found = [v for v in value if isinstance(v, int)]
        if len(found) != len(value):
            raise UnityError(f"{name} is symbolic")
        return found

    def axis(self, name: str = "axis", rank: int | None = None) -> int:
        """An axis, counted from the front."""
        value, count = self.integer(name), self.rank() if rank is None else rank
        return value + count if value < 0 else value


def onnx_dtype(dtype: DType) -> int:
    """ONNX's number of a dtype.

    Raises:
        UnityError: ONNX has no such type.
    """
    from onnx import helper

    try:
        if dtype.numpy.isbuiltin == 1:  # engines are given numpy's own types only
            return int(helper.np_dtype_to_tensor_dtype(dtype.numpy))
    except (KeyError, ValueError):
        pass
    raise UnityError(f"{dtype} is not exchanged with engines")
