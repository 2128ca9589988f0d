"""Operands of attentions: heads that are parts of a product's or repeated, rows, orders of axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unity.ir.dims import Dim, as_dim, equal
from unity.ir.graph import Call, Expr, Op, TupleGet, Var
from unity.ir.lattice import atom_type
from unity.ir.types import TensorType

from ..slices import part_of_split


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor as an operand of an attention.

    Attributes:
        layout: The order of its axes.
        first: The first head that is used.
        rows: How many rows are used, if not all.
        group: How many heads of queries share one of its heads.
    """

    value: Expr
    layout: str
    first: int = 0
    rows: Dim | None = None
    group: int = 1

    def dims(self) -> dict[str, Dim]:
        """Its dims by axis."""
        kind = atom_type(self.value)
        assert isinstance(kind, TensorType)
        assert isinstance(kind.shape, tuple)
        return dict(zip(self.layout, kind.shape, strict=True))

    def used(self) -> Dim:
        """How many rows are used."""
        return self.dims()["L"] if self.rows is None else self.rows


def repeated(x: Var, wide: Var, axis: int, values: Mapping[Var, Expr]) -> tuple[Expr, int] | None:
    """What `x` holds every head of several times in a row, and how many times.

    Such a tensor is the reshape of one, `wide`, with an axis behind the heads that was broadcast;
    `values` are what variables are bound to.
    """
    made = values.get(wide)
    if not isinstance(made, Call) or made.callee != Op("broadcast_to"):
        return None
    narrow = values.get(made.args[0]) if isinstance(made.args[0], Var) else None
    if not isinstance(narrow, Call) or narrow.callee not in (Op("expand_dims"), Op("reshape")):
        return None
    base, copies, whole = shape_of(narrow.args[0]), shape_of(wide), shape_of(x)
    if base is None or copies is None or whole is None or len(copies) != len(base) + 1:
        return None
    group = copies[axis + 1]
    if not isinstance(group, int) or group < 1:
        return None
    one = (*base[: axis + 1], 1, *base[axis + 1 :])
    shape = (*base[:axis], as_dim(base[axis] * group), *base[axis + 1 :])
    many = (*one[: axis + 1], group, *one[axis + 2 :])
    before = shape_of(made.args[0])
    fits = before is not None and equal_dims(before, one)
    if not fits or not equal_dims(copies, many) or not equal_dims(whole, shape):
        return None
    return narrow.args[0], group


def sliced(x: Expr, values: Mapping[Var, Expr]) -> tuple[Expr, int] | None:
    """What an expression is a part of along its last axis, and where it begins there."""
    made = values.get(x) if isinstance(x, Var) else None
    match made:
        case Call(Op("strided_slice"), (whole,)):
            begin, rank = made.attrs["begin"], rank_of(whole)
            if rank is None or made.attrs["axes"] not in ((-1,), (rank - 1,)):
                return None
            if made.attrs["strides"] not in (None, (1,)) or not isinstance(begin, tuple):
                return None
            start = begin[0]
            return (whole, start) if isinstance(start, int) and start >= 0 else None
        case TupleGet(Var() as parts, index):
            split = values.get(parts)
            if not isinstance(split, Call) or split.callee != Op("split"):
                return None
            shape = shape_of(split.args[0])
            bounds = None if shape is None else part_of_split(split, shape, index)
            if shape is None or bounds is None or bounds[0] != len(shape) - 1:
                return None
            return split.args[0], bounds[1]
        case _:
            return None


def rank_of(x: Expr) -> int | None:
    """How many axes a tensor has, if that is known."""
    kind = atom_type(x)
    return kind.ndim if isinstance(kind, TensorType) else None


def shape_of(x: Expr) -> tuple[Dim, ...] | None:
    """A tensor's dims, if they are known."""
    kind = atom_type(x)
    return kind.shape if isinstance(kind, TensorType) and isinstance(kind.shape, tuple) else None


def equal_dims(a: tuple[Dim, ...], b: object) -> bool:
    """Whether shapes are equal, whatever symbols are."""
    if not isinstance(b, tuple) or len(a) != len(b):
        return False
    return all(equal(m, n) for m, n in zip(a, b, strict=True))


def axes_from(call: Call, rank: int) -> tuple[int, ...]:
    """Where each axis of a transposed tensor comes from."""
    axes = call.attrs["axes"]
    if axes is None:
        return tuple(reversed(range(rank)))
    assert isinstance(axes, tuple)
    return tuple(a % rank for a in axes if isinstance(a, int))


def first_rows(cut: Call, x: Expr, layout: str) -> Dim | None:
    """How many rows a slice leaves of a tensor that it cuts short."""
    shape, axes = shape_of(x), cut.attrs["axes"]
    if shape is None or axes not in ((layout.index("L"),), (layout.index("L") - len(shape),)):
        return None
    if cut.attrs["begin"] != (0,) or cut.attrs["strides"] not in (None, (1,)):
        return None
    return shape[layout.index("L")]
