"""Running sums and products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import product
from unity.ir.dtype import INT64, Array, DType, dtype
from unity.ir.prim_expr import Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Buffer, For, IfThen, Seq, Stmt, Store
from unity.ir.types import TensorType, Type
from unity.op.accumulate import narrowed, working_dtype
from unity.op.argument import axis, tensor
from unity.op.attribute import DTYPE, FLAG, INT
from unity.op.movement.view import reshaped
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample

from .reduce import known

_PARAMS = (
    Param("x"),
    attr("axis", INT, None),
    attr("dtype", DTYPE, None),
    attr("exclusive", FLAG, False),
    attr("reverse", FLAG, False),
)

_LANES = 16
"""Rows that go in one vector; a target splits what is wider than its registers."""
_PIECE = 512
"""Rows of a thread's piece."""


def _dtype(attrs: Attrs, of: DType) -> DType:
    given = attrs["dtype"]
    if isinstance(given, DType | str):
        return dtype(given)
    return INT64 if of.kind == "bool" else of


def _infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    kind = None if x.dtype is None else _dtype(call.attrs, x.dtype)
    if call.attrs["axis"] is None:
        return TensorType((product(x.shape),) if isinstance(x.shape, tuple) else 1, kind)
    if x.ndim is not None:
        axis(call, call.attrs["axis"], x.ndim)
    return TensorType(x.shape, kind)


def _compute(
    args: Sequence[ComputeArg], attrs: Attrs, result: Type, *, products: bool = False
) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    dims, out = known(result)
    if attrs["axis"] is None:
        x = reshaped(x, dims)
    along = 0 if attrs["axis"] is None else int_attr(attrs, "axis") % x.ndim
    exclusive, reverse = attrs["exclusive"] is True, attrs["reverse"] is True
    wide = working_dtype(out)

    def body(inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> Stmt:
        """For each row: the first element, then each from its neighbour."""
        (source,), (target,) = inputs, outputs
        rows = _Rows(target, along)
        row, step, extent = rows.indices, rows.step, target.shape[along]

        def at(offset: int) -> tuple[PrimExpr, ...]:
            place: PrimExpr = step + offset if offset else step
            if reverse:
                place = extent - 1 - place
            return (*row[:along], place, *row[along + 1 :])

        def value(offset: int) -> PrimExpr:
            return te.cast(te.cast(Load(source, at(offset)), out), wide)

        first = imm(int(products), wide) if exclusive else value(0)
        before, own = Load(target, at(-1)), value(-1 if exclusive else 0)
        more = before * own if products else before + own
        started = te.min_(extent, imm(1))
        begin = For(step, imm(0), started, rows.beside(Store(target, at(0), first)))
        others = For(step, started, extent - started, rows.beside(Store(target, at(0), more)))
        return rows.each(Seq((begin, others)))

    name = "cumprod" if products else "cumsum"
    (total,) = te.extern([(dims, wide)], [x], body, name)
    return narrowed(total, out)


class _Rows:
    """The rows along an axis: where it is not the last, neighbours go side by side.

    Attributes:
        step: The variable along the axis.
        indices: Those of an element.
    """

    def __init__(self, buffer: Buffer, along: int) -> None:
        self._along, self._shape = along, buffer.shape
        self._loops: list[PrimExpr] = list(buffer.shape)
        self._vars = [PrimVar(f"i{d}") for d in range(len(buffer.shape))]
        self._vector, self._lane = PrimVar("vector"), PrimVar("lane")
        self.step = self._vars[along]
        self.indices: list[PrimExpr] = list(self._vars)
        if self._together:
            pieces = (self._shape[-1] + (_PIECE - 1)) // _PIECE
            self._loops[-1] = pieces
            first = self._vars[-1] * _PIECE + self._vector * _LANES
            self.indices[-1] = first + self._lane

    @property
    def _together(self) -> bool:
        return self._along < len(self._shape) - 1

    def beside(self, store: Store) -> Stmt:
        """A step of all rows of a piece."""
        if not self._together:
            return store
        left = self._shape[-1] - self._vars[-1] * _PIECE
        most = imm(_PIECE // _LANES)
        whole = te.min_(most, left // _LANES)
        lanes = For(self._lane, imm(0), imm(_LANES), store, "vectorized")
        vectors = For(self._vector, imm(0), whole, lanes)
        masked = IfThen(self.indices[-1] < self._shape[-1], store)
        lanes = For(self._lane, imm(0), imm(_LANES), masked, "vectorized")
        started = te.min_(most, (left + (_LANES - 1)) // _LANES)
        return Seq((vectors, For(self._vector, whole, started - whole, lanes)))

    def each(self, nest: Stmt) -> Stmt:
        """What is done along the axis, for all rows."""
        for d in reversed(range(len(self._vars))):
            if d != self._along:
                nest = For(self._vars[d], imm(0), self._loops[d], nest, "parallel")
        return nest


def _compute_products(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    return _compute(args, attrs, result, products=True)


def _refer_products(args: Sequence[RefArg], attrs: Attrs) -> Array:
    return _reference(args, attrs, products=True)


def _reference(args: Sequence[RefArg], attrs: Attrs, *, products: bool = False) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    out = _dtype(attrs, dtype(x.dtype))
    along = 0 if attrs["axis"] is None else int_attr(attrs, "axis")
    values = x.reshape(-1) if attrs["axis"] is None else x
    wide = values.astype(out.numpy).astype(np.float64 if out.is_float else out.numpy)
    if attrs["reverse"] is True:
        wide = np.flip(wide, along)
    rule = np.multiply if products else np.add
    total = np.asarray(rule.accumulate(wide, axis=along, dtype=wide.dtype))
    if attrs["exclusive"] is True:
        total = np.roll(total, 1, along)
        first = [slice(None)] * total.ndim
        first[along] = slice(0, 1)
        total[tuple(first)] = int(products)
    if attrs["reverse"] is True:
        total = np.flip(total, along)
    return total.astype(out.numpy)


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3)
    return [
        sample(_PARAMS, (s.array((a, b)),), axis=1),
        sample(_PARAMS, (s.array((a, b, c), "int32"),), axis=0),
        sample(_PARAMS, (s.array((a, b, c)),), axis=1, exclusive=True),
        sample(_PARAMS, (s.array((a, b), "float64"),), axis=-1, reverse=True),
        sample(_PARAMS, (s.array((b,), "float16"),), axis=0, reverse=True, exclusive=True),
        sample(_PARAMS, (s.array((a, b)),)),
        sample(_PARAMS, (s.array((b,), "int8"),), axis=0, dtype=dtype("int64")),
        sample(_PARAMS, (s.array((b, 2), "bool"),), axis=0),
        sample(_PARAMS, (s.array((0, 2)),), axis=0),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "cumsum",
        _PARAMS,
        _infer,
        _reference,
        """Running sums along `axis`; of the flattened tensor by default (R.cumsum, ONNX CumSum).

        `exclusive` leaves each element itself out, `reverse` runs from the end. The dtype is
        `dtype`, else x's (int64 of bool). Half-width floats accumulate in float32.
        """,
        compute=_compute,
        pattern="opaque",
        samples=_samples,
    ),
    OpDef(
        "cumprod",
        _PARAMS,
        _infer,
        _refer_products,
        """Running products along `axis`; of the flattened tensor by default (R.cumprod, CumProd).

        `exclusive` leaves each element itself out, `reverse` runs from the end. The dtype is
        `dtype`, else x's (int64 of bool). Half-width floats accumulate in float32.
        """,
        compute=_compute_products,
        pattern="opaque",
        samples=_samples,
    ),
)
