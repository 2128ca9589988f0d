"""Copies of a tensor with elements replaced at places that index tensors tell.

An index out of range writes nothing (a negative one first counts from the end): ONNX and torch
call it an error, and a kernel has nobody to tell. Where several indices name one place, the last
wins, or all are joined by `reduction`. Updates run in order: results do not depend on threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import always_ge
from unity.ir.dtype import INT64, Array
from unity.ir.prim_expr import Binary, BinaryOp, Load, PrimExpr, PrimVar, imm
from unity.ir.stmt import Buffer, For, IfThen, Let, Seq, Stmt, Store
from unity.ir.symbols.convert import to_dim
from unity.ir.types import TensorType, Type
from unity.op.argument import axis, common_dtype, int_tensor, require_equal, tensor, type_text
from unity.op.attribute import INT, TEXT
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample

_ELEMENTS = (
    Param("x"),
    Param("indices"),
    Param("updates"),
    attr("axis", INT, 0),
    attr("reduction", TEXT, "update"),
)
_ND = (Param("x"), Param("indices"), Param("updates"), attr("reduction", TEXT, "update"))
_JOINS: dict[str, BinaryOp | None] = {
    "update": None,
    "add": "add",
    "mul": "mul",
    "max": "max",
    "min": "min",
}
_NUMPY: dict[str, Callable[[Array, Array], Array]] = {
    "update": lambda old, new: new,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _check(call: OpCall) -> tuple[TensorType, TensorType, TensorType]:
    x, indices, updates = tensor(call, 0), int_tensor(call, 1), tensor(call, 2)
    common_dtype(call, (x, updates))
    if call.attrs["reduction"] not in _JOINS:
        raise call.error(
            f"reduction must be one of {', '.join(_JOINS)}, got {call.attrs['reduction']!r}"
        )
    return x, indices, updates


def _loops(extents: Sequence[PrimExpr], body: Callable[[tuple[PrimVar, ...]], Stmt]) -> Stmt:
    """A serial loop nest."""
    index = tuple(PrimVar(f"i{d}") for d in range(len(extents)))
    stmt = body(index)
    for var, extent in zip(reversed(index), reversed(extents), strict=True):
        stmt = For(var, imm(0), extent, stmt)
    return stmt


def _copy(source: Buffer, target: Buffer) -> Stmt:
    return _loops(target.shape, lambda i: Store(target, i, Load(source, i)))


def _joined(attrs: Attrs, target: Buffer, at: tuple[PrimExpr, ...], value: PrimExpr) -> Stmt:
    op = _JOINS[str(attrs["reduction"])]
    return Store(target, at, value if op is None else Binary(op, Load(target, at), value))


def _where(index: PrimExpr, extent: PrimExpr) -> PrimExpr:
    """An index with a negative one counted from the end."""
    i = te.cast(index, INT64)
    return te.select(i < 0, i + extent, i)


def _guarded(targets: Sequence[tuple[PrimVar, PrimExpr, PrimExpr]], body: Stmt) -> Stmt:
    """`body` with each var bound to its value, where all lie within their extents."""
    inside = te.all_true(*(test for var, _, extent in targets for test in (var >= 0, var < extent)))
    stmt: Stmt = IfThen(inside, body)
    for var, value, _ in reversed(targets):
        stmt = Let(var, value, stmt)
    return stmt


def _three(args: Sequence[ComputeArg]) -> list[te.Tensor]:
    found: list[te.Tensor] = []
    for a in args:
        assert isinstance(a, te.Tensor)
        found.append(a)
    return found


def _arrays(args: Sequence[RefArg]) -> list[Array]:
    return [a for a in args if isinstance(a, np.ndarray)]


# scatter_elements


def _elements_infer(call: OpCall) -> Type:
    x, indices, updates = _check(call)
    if x.ndim is None:
        return x
    along = axis(call, call.attrs["axis"], x.ndim)
    for other in (indices, updates):
        if other.ndim not in (x.ndim, None):
            raise call.error(f"{type_text(other)} must have the rank of {type_text(x)}")
    if isinstance(indices.shape, tuple) and isinstance(updates.shape, tuple):
        for d, (a, b) in enumerate(zip(updates.shape, indices.shape, strict=True)):
            require_equal(call, a, b, f"'updates' along axis {d}")
    if isinstance(indices.shape, tuple) and isinstance(x.shape, tuple):
        for d, (extent, taken) in enumerate(zip(x.shape, indices.shape, strict=True)):
            if d != along and not always_ge(extent, taken):
                raise call.error(
                    f"axis {d} of the indices {type_text(indices)} must not exceed that of "
                    f"{type_text(x)}"
                )
    return x


def _elements_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, indices, updates = _three(args)
    along = int_attr(attrs, "axis") % x.ndim

    def body(inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> Stmt:
        (source, places, values), (target,) = inputs, outputs

        def step(i: tuple[PrimVar, ...]) -> Stmt:
            at = PrimVar("at")
            extent = target.shape[along]
            store = _joined(attrs, target, (*i[:along], at, *i[along + 1 :]), Load(values, i))
            return _guarded([(at, _where(Load(places, i), extent), extent)], store)

        return Seq((_copy(source, target), _loops(places.shape, step)))

    (made,) = te.extern([(x.shape, x.dtype)], [x, indices, updates], body, "scatter_elements")
    return made


def _elements_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, indices, updates = _arrays(args)
    along, join = int_attr(attrs, "axis") % x.ndim, _NUMPY[str(attrs["reduction"])]
    result, wide = x.copy(), indices.astype(np.int64)
    for i in itertools.product(*(range(n) for n in indices.shape)):
        place = int(wide[i])
        place += x.shape[along] if place < 0 else 0
        if 0 <= place < x.shape[along]:
            at = (*i[:along], place, *i[along + 1 :])
            result[at] = join(np.asarray(result[at]), np.asarray(updates[i]))
    return result


def _elements_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2, 2, 5)
    x = s.array((a, b))
    found = [
        sample(_ELEMENTS, (x, s.array((a, b), "int64", -a, a - 1), s.array((a, b)))),
        sample(_ELEMENTS, (x, s.array((a, 7), "int32", -9, 9), s.array((a, 7))), axis=1),
        sample(
            _ELEMENTS,
            (s.array((a, b), "int8"), s.array((1, b), "int64", 0, a - 1), s.array((1, b), "int8")),
        ),
        sample(_ELEMENTS, (x, s.array((0, b), "int64"), s.array((0, b)))),
    ]
    for how in ("add", "mul", "max", "min"):
        at = s.array((a, 2 * b), "int64", 0, b - 1)
        values = s.array((a, 2 * b))
        found.append(sample(_ELEMENTS, (x, at, values), axis=-1, reduction=how))
    return found


# scatter_nd


def _nd_infer(call: OpCall) -> Type:
    x, indices, updates = _check(call)
    if not isinstance(x.shape, tuple) or not isinstance(indices.shape, tuple):
        return x
    length = indices.shape[-1] if indices.shape else None
    if not isinstance(length, int) or length > len(x.shape):
        raise call.error(
            f"the last axis of {type_text(indices)} gives too many indices, or an unknown number, "
            f"for {type_text(x)}"
        )
    if isinstance(updates.shape, tuple):
        wanted = (*indices.shape[:-1], *x.shape[length:])
        if len(wanted) != len(updates.shape):
            raise call.error(f"'updates' must have rank {len(wanted)}, got {type_text(updates)}")
        for d, (a, b) in enumerate(zip(updates.shape, wanted, strict=True)):
            require_equal(call, a, b, f"'updates' along axis {d}")
    return x


def _nd_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, indices, updates = _three(args)
    length = to_dim(indices.shape[-1])
    assert isinstance(length, int)
    outer = indices.ndim - 1

    def body(inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> Stmt:
        (source, places, values), (target,) = inputs, outputs

        def step(i: tuple[PrimVar, ...]) -> Stmt:
            at = [PrimVar(f"at{n}") for n in range(length)]
            bound = [
                (var, _where(Load(places, (*i[:outer], imm(n))), target.shape[n]), target.shape[n])
                for n, var in enumerate(at)
            ]
            return _guarded(bound, _joined(attrs, target, (*at, *i[outer:]), Load(values, i)))

        return Seq((_copy(source, target), _loops(values.shape, step)))

    (made,) = te.extern([(x.shape, x.dtype)], [x, indices, updates], body, "scatter_nd")
    return made


def _nd_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, indices, updates = _arrays(args)
    join, result = _NUMPY[str(attrs["reduction"])], x.copy()
    wide, length = indices.astype(np.int64), indices.shape[-1]
    extents = np.asarray(x.shape[:length], np.int64)
    for i in itertools.product(*(range(n) for n in indices.shape[:-1])):
        place = np.where(wide[i] < 0, wide[i] + extents, wide[i])
        if bool(np.all((place >= 0) & (place < extents))):
            at = tuple(int(p) for p in place)
            result[at] = join(np.asarray(result[at]), np.asarray(updates[i]))
    return result


def _nd_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2, 2, 5)
    x = s.array((a, b, 3))
    return [
        sample(_ND, (x, s.array((4, 2), "int64", -2, 1), s.array((4, 3)))),
        sample(_ND, (x, s.array((2, 2, 1), "int32", -9, 9), s.array((2, 2, b, 3)))),
        sample(_ND, (x, s.array((5, 3), "int64", 0, 1), s.array((5,))), reduction="add"),
        sample(_ND, (x, s.array((6, 1), "int64", 0, 1), s.array((6, b, 3))), reduction="max"),
        sample(_ND, (x, s.array((0, 2), "int64"), s.array((0, 3)))),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "scatter_elements",
        _ELEMENTS,
        _elements_infer,
        _elements_reference,
        """x with ``x[i, indices[i, j], k] = updates[i, j, k]`` and the like along `axis`.

        `reduction` is update, add, mul, max or min. A negative index counts from the end; one out
        of range writes nothing, without an error unless compiled with ``check_bounds=True``
        (R.scatter_elements, ONNX ScatterElements).
        """,
        compute=_elements_compute,
        pattern="opaque",
        samples=_elements_samples,
    ),
    OpDef(
        "scatter_nd",
        _ND,
        _nd_infer,
        _nd_reference,
        """x with slices at index vectors, the last axis of `indices`, replaced by `updates`.

        `reduction` is update, add, mul, max or min. Indices are taken as in scatter_elements
        (R.scatter_nd, ONNX ScatterND).
        """,
        compute=_nd_compute,
        pattern="opaque",
        samples=_nd_samples,
    ),
)
