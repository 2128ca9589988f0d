"""Emitting what one node of a foreign model becomes: types asked, operators bound, sizes checked.

An importer's view of a node derives from `Emission` and adds what its format says of operands and
attributes. What it does not implement it says with `Emission.gap`, to be collected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from unity.errors import Span, UnityError
from unity.ir.dims import Dim, Symbol, as_dim, equal, floordiv, symbols_of
from unity.ir.dtype import DType
from unity.ir.graph import Call, Constant, Expr, ShapeValue, Tuple
from unity.ir.types import Shape, ShapeType, TensorType
from unity.op.builder import GraphBuilder
from unity.op.call import call_op
from unity.op.elementwise.quantize import is_of_weights
from unity.op.emitter import Emitter
from unity.op.infer import infer_type
from unity.op.registry import RefArg
from unity.op.table import OPS

from .broadcasting import Broadcasts, broadcast
from .sizes import Sizes, is_symbolic

FOLDED = 1 << 16
"""Calls on constants are folded if the result has at most so many elements; passes do the rest."""


UNKNOWN_RANK = "an input of unknown rank"
"""What a gap begins with where it is not known how many axes a tensor has."""


class Gap(Exception):  # noqa: N818  (it is collected, not an error yet)
    """Something a converter does not implement."""


class Emission(Emitter):
    """What one node's code is emitted with.

    Attributes:
        builder: Of the body that it becomes part of.
        broadcasts: What unknown dims broadcast to in that graph.
        label: What bindings made for this node are called.
        span: Where errors are.
    """

    def __init__(
        self, builder: GraphBuilder, broadcasts: Broadcasts, label: str, span: Span | None
    ) -> None:
        super().__init__(builder, label, span)
        self.builder = builder
        self.broadcasts = broadcasts

    def gap(self, what: str) -> Gap:
        """That something is not implemented; to be raised."""
        return Gap(what)

    def symbolic_gap(self, what: str, *sizes: Dim) -> Gap:
        """That something is not implemented while sizes are unknown, and how to fix them."""
        names = ", ".join(f'"{n}": ...' for n in sorted(s.name for s in symbols_of(*sizes)))
        return Gap(f"{what}; compile with sizes: dynamic={{{names}}}" if names else what)

    # Types.

    def shape_of(self, value: Expr) -> Shape:
        """The shape of a tensor."""
        found = self.type_of(value)
        if not isinstance(found.shape, tuple):
            raise self.gap(f"{UNKNOWN_RANK}; fix sizes it follows from with `dynamic={{...}}`")
        return found.shape

    def extents(self, value: Expr, what: str) -> tuple[int, ...]:
        """The shape of a tensor, which must be known."""
        shape = self.shape_of(value)
        known = tuple(d for d in shape if isinstance(d, int))
        if len(known) != len(shape):
            raise self.symbolic_gap(f"{what} of unknown extents", *shape)
        return known

    def axis(self, value: int, rank: int) -> int:
        """An axis counted from the front."""
        if not -rank <= value < max(rank, 1):
            raise UnityError(f"axis {value} is out of range for rank {rank}")
        return value % rank if rank else 0

    def materialize(self, sizes: Sizes) -> Expr:
        """A tensor of sizes."""
        known = sizes.constant()
        if known is not None:
            return Constant(known)
        if sizes.dims.ndim == 0:
            return self.op("dims", sizes.flat[0], dtype=sizes.dtype)
        vector = self.op("dims", sizes.flat, dtype=sizes.dtype)
        return vector if sizes.dims.ndim == 1 else self.op("reshape", vector, sizes.dims.shape)

    # Emission.

    def op(self, name: str, *args: object, **attrs: object) -> Expr:
        """The result of an operator: bound to a variable; folded if it is constant and small."""
        call = call_op(name, *args, span=self.span, signatures=self.builder.signatures, **attrs)
        known = fold(call)
        if known is not None:
            return known
        result = self.builder.emit(call, self.label)
        self.broadcasts.note(call, result)
        return result

    def binary(self, name: str, a: Expr, b: Expr) -> Expr:
        """A broadcasting operator; which unknown dims are 1 shows at run time."""
        return self.op(name, *broadcast(self, (a, b)))

    def agreed(self, value: Expr, shape: Sequence[Dim | None]) -> Expr:
        """A tensor whose dims are those of a shape, which is checked when it runs; None is any.

        Numbers that differ, and ranks, are left to the operator that takes it.
        """
        own = self.shape_of(value)
        if len(own) != len(shape):
            return value
        wanted = tuple(
            d if w is None or equal(d, w) or not (is_symbolic(d) or is_symbolic(w)) else w
            for d, w in zip(own, shape, strict=True)
        )
        return value if wanted == own else self.assert_shape(value, wanted)

    def require(self, size: Dim, expected: Dim, what: str, rule: str) -> None:
        """Check at run time that two sizes are equal, where that is not known.

        Args:
            size: One, made of the symbols whose values a failure tells.
            expected: The other.
            what: What the check is called: "reads_nothing".
            rule: What is said of the node if they differ: "it must read something".
        """
        if not equal(size, expected):
            kind, name = ShapeType((expected,)), f"{self.label}_{what}"
            self.builder.match_cast(ShapeValue((size,)), kind, name, self.ruled(rule))

    def divisible(self, value: Expr, axes: Sequence[int], by: int) -> Expr:
        """A tensor some of whose dims are multiples of a number, which is checked when it runs.

        Numbers that are none are left to the operator that takes it.
        """
        dims = list(self.shape_of(value))
        for axis in axes:
            whole = as_dim(floordiv(dims[axis], by) * by)
            if is_symbolic(dims[axis]) and not equal(dims[axis], whole):
                rule = f"its input's axis {axis} must be a multiple of {by}"
                self.require(dims[axis], whole, f"axis_{axis}_divides_by_{by}", rule)
                dims[axis] = whole
        return self.agreed(value, dims)

    def ruled(self, rule: str) -> Span | None:
        """The node's place, for a check that demands something, said in words."""
        return None if self.span is None else replace(self.span, rule=rule)

    def sized(self, size: Dim, name: str) -> Symbol:
        """A new symbol that has the value of a size at run time."""
        symbol = self.builder.fresh(name)
        self.builder.match_cast(
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
    if is_of_weights(call):
        return None
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
