"""One node being converted: its inputs as expressions or sizes, its attributes, ways to emit code.

A converter takes a `Node` and gives the values of its outputs. What it does not implement it says
with `Node.gap`; an attribute that it never read counts as such.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import onnx

from unity.errors import Span, UnityError
from unity.ir.dims import Dim, Symbol, equal, symbols_of
from unity.ir.dtype import BOOL, Array, DType, dtype
from unity.ir.graph import Call, Constant, Expr, ShapeValue, Tuple, TupleGet
from unity.ir.types import Shape, ShapeType, TensorType
from unity.op.call import call_op
from unity.op.infer import infer_type
from unity.op.registry import RefArg
from unity.op.table import OPS

from .broadcasting import broadcast
from .sizes import Sizes, is_symbolic, sizes_of_array
from .tensors import array_of

if TYPE_CHECKING:
    from .importer import GraphImporter

Value: TypeAlias = "Expr | Sizes"
Converter: TypeAlias = "Callable[[Node], Value | list[Value] | tuple[Value, ...]]"
FOLDED = 1 << 16
"""Calls on constants are folded if the result has at most so many elements; passes do the rest."""


class Gap(Exception):  # noqa: N818  (it is collected, not an error yet)
    """Something a converter does not implement."""


class Node:
    """A node and the graph it stands in."""

    def __init__(self, proto: onnx.NodeProto, graph: GraphImporter, version: int) -> None:
        self.proto = proto
        self.graph = graph
        self.version = version
        self.attributes = {a.name: a for a in proto.attribute}
        self.unread = set(self.attributes)
        self.span = Span.of_node(graph.model.name, f"{self.label} ({proto.op_type})")

    def gap(self, what: str) -> Gap:
        """That something is not implemented; to be raised."""
        return Gap(what)

    def symbolic_gap(self, what: str, *sizes: Dim) -> Gap:
        """That something is not implemented while sizes are unknown, and how to fix them."""
        names = ", ".join(f'"{n}": ...' for n in sorted(s.name for s in symbols_of(*sizes)))
        return Gap(f"{what}; compile with sizes: dynamic={{{names}}}" if names else what)

    # Inputs.

    @property
    def count(self) -> int:
        """How many inputs are listed."""
        return len(self.proto.input)

    def has(self, index: int) -> bool:
        """Whether an input is given."""
        return index < self.count and bool(self.proto.input[index])

    def value(self, index: int) -> Value:
        """An input, as it is."""
        if not self.has(index):
            raise UnityError(f"lacks its input {index}")
        return self.graph.value(self.proto.input[index])

    def tensor(self, index: int) -> Expr:
        """An input as a tensor."""
        value = self.value(index)
        return self.materialize(value) if isinstance(value, Sizes) else value

    def optional(self, index: int) -> Expr | None:
        """An input as a tensor, if it is given."""
        return self.tensor(index) if self.has(index) else None

    def materialize(self, sizes: Sizes) -> Expr:
        """A tensor of sizes."""
        known = sizes.constant()
        if known is not None:
            return Constant(known)
        if sizes.dims.ndim == 0:
            return self.op("dims", sizes.flat[0], dtype=sizes.dtype)
        vector = self.op("dims", sizes.flat, dtype=sizes.dtype)
        return vector if sizes.dims.ndim == 1 else self.op("reshape", vector, sizes.dims.shape)

    def sizes(self, index: int) -> Sizes | None:
        """An input whose elements are known: sizes, or a small constant of whole numbers."""
        value = self.value(index)
        if isinstance(value, Sizes):
            return value
        return sizes_of_array(value.data) if isinstance(value, Constant) else None

    def symbolic(self, *indices: int) -> list[Sizes] | None:
        """Some inputs as sizes, if all are known and one of them is not a plain constant."""
        if not any(isinstance(self.value(i), Sizes) for i in indices):
            return None
        found = [self.sizes(i) for i in indices]
        known = [f for f in found if f is not None]
        return known if len(known) == len(found) else None

    def dims(self, index: int, what: str) -> tuple[Dim, ...]:
        """An input that says sizes (a shape, axes, starts), element by element."""
        found = self.sizes(index)
        if found is None:
            raise self.gap(f"{what} known only at run time")
        return found.flat

    def ints(self, index: int, what: str) -> tuple[int, ...]:
        """An input that says plain integers."""
        found = self.dims(index, what)
        numbers = tuple(d for d in found if isinstance(d, int))
        if len(numbers) != len(found):
            raise self.gap(f"{what} that depends on the symbol {found}")
        return numbers

    def constant(self, index: int) -> Array | None:
        """An input's array, if it is known."""
        value = self.value(index)
        if isinstance(value, Sizes):
            return value.constant()
        return value.data if isinstance(value, Constant) else None

    def scalar(self, index: int, what: str) -> float:
        """An input that is one known number: an int if it is of an integer dtype."""
        array = self.constant(index)
        if array is None or array.size != 1:
            raise self.gap(f"{what} known only at run time")
        number = array.reshape(())
        return int(number) if dtype(array.dtype).is_int else float(number.astype(np.float64))

    # Types.

    def type_of(self, value: Expr) -> TensorType:
        """The type of a tensor."""
        found = infer_type(value, self.graph.builder.signatures)
        if not isinstance(found, TensorType):
            raise UnityError("takes a tensor")
        return found

    def shape_of(self, value: Expr) -> Shape:
        """The shape of a tensor."""
        found = self.type_of(value)
        if not isinstance(found.shape, tuple):
            raise self.gap(
                "an input of unknown rank; fix sizes it follows from with `dynamic={...}`"
            )
        return found.shape

    def dtype_of(self, value: Expr) -> DType:
        """The dtype of a tensor."""
        found = self.type_of(value).dtype
        assert found is not None
        return found

    def rank(self, index: int) -> int:
        """The rank of an input."""
        return len(self.shape_of(self.tensor(index)))

    def require_bool(self, index: int) -> None:
        """Refuse an input that is a condition, but no bool."""
        kind = self.dtype_of(self.tensor(index))
        if kind != BOOL:
            raise UnityError(f"its condition must be bool, got {kind}")

    def axis(self, value: int, rank: int) -> int:
        """An axis counted from the front."""
        if not -rank <= value < max(rank, 1):
            raise UnityError(f"axis {value} is out of range for rank {rank}")
        return value % rank if rank else 0

    # Attributes.

    def attribute(self, name: str) -> onnx.AttributeProto | None:
        """An attribute, noted as read."""
        self.unread.discard(name)
        return self.attributes.get(name)

    def ignore(self, *names: str) -> None:
        """Attributes that change nothing."""
        self.unread.difference_update(names)

    def int_of(self, name: str, default: int) -> int:
        """An int attribute."""
        found = self._typed(name, onnx.AttributeProto.INT)
        return default if found is None else int(found.i)

    def float_of(self, name: str, default: float) -> float:
        """A float attribute."""
        found = self._typed(name, onnx.AttributeProto.FLOAT)
        return default if found is None else float(found.f)

    def ints_of(self, name: str) -> tuple[int, ...] | None:
        """An attribute of ints, if it is given."""
        found = self._typed(name, onnx.AttributeProto.INTS)
        return None if found is None else tuple(int(i) for i in found.ints)

    def floats_of(self, name: str) -> tuple[float, ...] | None:
        """An attribute of floats, if it is given."""
        found = self._typed(name, onnx.AttributeProto.FLOATS)
        return None if found is None else tuple(float(f) for f in found.floats)

    def texts_of(self, name: str) -> tuple[str, ...] | None:
        """An attribute of strings, if it is given."""
        found = self._typed(name, onnx.AttributeProto.STRINGS)
        return None if found is None else tuple(s.decode(errors="replace") for s in found.strings)

    def text_of(self, name: str, default: str) -> str:
        """A string attribute."""
        found = self._typed(name, onnx.AttributeProto.STRING)
        return default if found is None else found.s.decode(errors="replace")

    def graph_of(self, name: str) -> onnx.GraphProto:
        """A graph attribute, which must be given."""
        found = self._typed(name, onnx.AttributeProto.GRAPH)
        if found is None or not found.HasField("g"):
            raise UnityError(f"lacks the graph {name!r}")
        return found.g

    def array_of(self, name: str) -> Array | None:
        """A tensor attribute."""
        found = self._typed(name, onnx.AttributeProto.TENSOR)
        if found is None:
            return None
        return array_of(found.t, self.graph.model.storage, f"the attribute {name!r}")

    def _typed(self, name: str, kind: int) -> onnx.AttributeProto | None:
        found = self.attribute(name)
        if found is not None and found.type != kind:
            wanted = onnx.AttributeProto.AttributeType.Name(kind)
            raise UnityError(f"the attribute {name!r} must be of type {wanted}")
        return found

    # Emission.

    @property
    def label(self) -> str:
        """What bindings made for this node are called."""
        return self.proto.name or next((o for o in self.proto.output if o), self.proto.op_type)

    def op(self, name: str, *args: object, **attrs: object) -> Expr:
        """The result of an operator: bound to a variable; folded if it is constant and small."""
        known = self.graph.builder.signatures
        call = call_op(name, *args, span=self.span, signatures=known, **attrs)
        return fold(call) or self.graph.builder.emit(call, self.label)

    def field(self, value: Expr, index: int) -> Expr:
        """One field of a tuple."""
        return self.graph.builder.emit(TupleGet(value, index), f"{self.label}_{index}", self.span)

    def number(self, value: float, like: Expr) -> Constant:
        """A scalar constant of another tensor's dtype."""
        return Constant(np.asarray(value).astype(self.dtype_of(like).numpy))

    def cast(self, value: Expr, to: DType) -> Expr:
        """A tensor as another dtype; itself if it has it."""
        return value if self.dtype_of(value) == to else self.op("astype", value, dtype=to)

    def binary(self, name: str, a: Expr, b: Expr) -> Expr:
        """A broadcasting operator; which unknown dims are 1 shows at run time."""
        return self.op(name, *broadcast(self, (a, b)))

    def assert_shape(self, value: Expr, shape: Shape) -> Expr:
        """A tensor whose shape is checked at run time."""
        kind = TensorType(shape, self.dtype_of(value))
        return self.graph.builder.match_cast(value, kind, f"{self.label}_checked", self.span)

    def require(self, size: Dim, expected: Dim, what: str) -> None:
        """Check at run time that two sizes are equal, where that is not known.

        `what` is said of the node if they are not: "reads_nothing".
        """
        if not equal(size, expected):
            kind, name = ShapeType((expected,)), f"{self.label}_{what}"
            self.graph.builder.match_cast(ShapeValue((size,)), kind, name, self.span)

    def sized(self, size: Dim, name: str) -> Symbol:
        """A new symbol that has the value of a size at run time."""
        symbol = self.graph.builder.fresh(name)
        self.graph.builder.match_cast(
            ShapeValue((size,)), ShapeType((symbol,)), f"{self.label}_size", self.span
        )
        return symbol


def fold(call: Call) -> Constant | None:
    """The constant that a call on constants gives, if it is small."""
    args: list[RefArg] = []
    for arg in call.args:
        known = _known(arg)
        if known is None:
            return None
        args.append(known)
    row = OPS[getattr(call.callee, "name", "")]
    result = infer_type(call, {})
    if row.reference is None or not isinstance(result, TensorType):
        return None
    if not isinstance(result.shape, tuple) or any(is_symbolic(d) for d in result.shape):
        return None
    if any(_mentions_symbol(v) for v in call.attrs.values()):
        return None
    if prod(d for d in result.shape if isinstance(d, int)) > FOLDED:
        return None
    value = row.reference(args, call.attrs)
    return Constant(np.array(value, order="C")) if isinstance(value, np.ndarray) else None


def _mentions_symbol(value: object) -> bool:
    if isinstance(value, tuple):
        return any(_mentions_symbol(v) for v in value)
    return not isinstance(value, DType | str | int | float | None)


def _known(arg: Expr) -> RefArg | None:
    match arg:
        case Constant(data):
            return data
        case ShapeValue(dims) if not any(is_symbolic(d) for d in dims):
            return tuple(int(d) for d in dims if isinstance(d, int))
        case Tuple(fields):
            arrays = [f.data for f in fields if isinstance(f, Constant)]
            return tuple(arrays) if len(arrays) == len(fields) else None
        case _:
            return None
