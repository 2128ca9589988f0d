"""Other shapes of the same elements in the same order: reshape, flatten, expand_dims, squeeze.

Memory planning gives these no kernel. Where one is fused, its compute is index arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, as_dim, dim_text, divisor, equal, factors_of, floordiv, product
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.symbols.convert import to_prim_expr
from unity.ir.types import Shape, TensorType, Type
from unity.op.argument import axes, shape, shape_text, tensor, type_text
from unity.op.attribute import INTS
from unity.op.reduction.reduce import known
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, ints_attr
from unity.op.sampling import Sampler, sample
from unity.op.window import dims_of

_RESHAPE = (Param("x"), Param("shape", "shape"))
_X = (Param("x"),)
_EXPAND = (Param("x"), attr("axis", INTS))
_SQUEEZE = (Param("x"), attr("axis", INTS, None))


def _reshape_infer(call: OpCall) -> Type:
    x, wanted = tensor(call, 0), shape(call, 1)
    if not isinstance(wanted.dims, tuple):
        return TensorType(wanted.dims, x.dtype)
    if sum(d == -1 for d in wanted.dims) > 1:
        raise call.error(f"at most one dim may be -1, got {shape_text(wanted.dims)}")
    if any(isinstance(d, int) and d < -1 for d in wanted.dims):
        raise call.error(f"a dim is negative in {shape_text(wanted.dims)}")
    if not isinstance(x.shape, tuple):
        open_end = any(d == -1 for d in wanted.dims)
        return TensorType(len(wanted.dims) if open_end else wanted.dims, x.dtype)
    return TensorType(_resolved(call, x, x.shape, wanted.dims), x.dtype)


def _resolved(call: OpCall, x: TensorType, old: Shape, wanted: Shape) -> Shape:
    """The wanted shape with -1 worked out.

    Raises:
        UnityError: The element counts are not provably equal.
    """
    left, right = cancelled(old, tuple(d for d in wanted if d != -1))
    rest = product(left)
    if any(d == -1 for d in wanted):
        if any(d == 0 for d in right):
            raise call.error(f"-1 beside 0 in {shape_text(wanted)} can be any number")
        free = quotient(rest, right)
        if free is None:
            raise call.error(
                f"the {dim_text(product(old))} elements of {type_text(x)} don't provably divide "
                f"into {shape_text(wanted)}",
                hint=_facts_hint(product(old)),
            )
        return tuple(free if d == -1 else d for d in wanted)
    if not equal(rest, product(right)):
        raise call.error(
            f"{type_text(x)} has {dim_text(product(old))} elements, "
            f"{shape_text(wanted)} {dim_text(product(wanted))}",
            hint=_facts_hint(product(old), product(wanted)),
        )
    return wanted


def cancelled(old: Shape, wanted: Shape) -> tuple[list[Dim], list[Dim]]:
    """The factors of two shapes without those that both have: what is left divides termwise."""
    left = [f for d in old for f in factors_of(d)]
    right = [f for d in wanted for f in factors_of(d)]
    for d in list(right):
        found = next((i for i, e in enumerate(left) if not equal(e, 0) and equal(e, d)), None)
        if found is not None:
            left.pop(found)
            right.remove(d)
    return left, right


def quotient(count: Dim, factors: Sequence[Dim]) -> Dim | None:
    """The count divided by all factors; None unless that provably leaves no rest."""
    for d in sorted(factors, key=lambda d: isinstance(d, int)):  # numbers last: facts decide them
        whole = floordiv(count, d)
        if not equal(whole * d, count) and not (isinstance(d, int) and divisor(count) % d == 0):
            return None
        count = whole
    return count


def _facts_hint(*counts: Dim) -> str | None:
    if all(isinstance(c, int) for c in counts):
        return None
    return (
        'give the dim its divisor, dim("n", multiple_of=2), or name the shape with match_cast; a '
        "model whose file holds the numbers of one size needs that: "
        'unity.compile(path, dynamic={"x": {1: 50}})'
    )


def _reshape_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    return reshaped(x, known(result)[0])


def reshaped(x: te.Tensor, dims: Shape) -> te.Tensor:
    """A tensor's elements in row-major order under another shape of as many."""
    groups = _groups(dims_of(x), dims)

    def element(*i: PrimExpr) -> PrimExpr:
        at: list[PrimExpr] = []
        taken = 0
        for old, new in groups:
            at += _unravel(_ravel(i[taken : taken + len(new)], new), old)
            taken += len(new)
        return x[tuple(at)]

    return te.compute(dims, element, "reshape")


def _groups(old: Shape, new: Shape) -> list[tuple[Shape, Shape]]:
    """Runs of dims with equal products, as short as they can be: (b, s * h) to (b, s, h) has two.

    >>> _groups((2, 12), (2, 3, 4))
    [((2,), (2,)), ((12,), (3, 4))]
    """
    found: list[tuple[Shape, Shape]] = []
    a, b = old, new
    while a or b:
        ends = [(p, q) for p in range(len(a) + 1) for q in range(len(b) + 1) if p + q]
        ends.sort(key=sum)
        p, q = next(
            ((p, q) for p, q in ends if equal(product(a[:p]), product(b[:q]))), (len(a), len(b))
        )
        found.append((a[:p], b[:q]))
        a, b = a[p:], b[q:]
    return found


def _ravel(index: Sequence[PrimExpr], extents: Shape) -> PrimExpr | None:
    """The position in row-major order; None of nothing."""
    flat: PrimExpr | None = None
    for i, extent in zip(index, extents, strict=True):
        flat = i if flat is None else flat * to_prim_expr(extent) + i
    return flat


def _unravel(flat: PrimExpr | None, extents: Shape) -> list[PrimExpr]:
    """The indices of a position."""
    if flat is None or all(equal(e, 1) for e in extents):
        return [imm(0)] * len(extents)
    index: list[PrimExpr] = []
    for d, extent in enumerate(extents):
        stride = product(extents[d + 1 :])
        i = flat if equal(stride, 1) else flat // to_prim_expr(stride)
        outer = all(equal(e, 1) for e in extents[:d])
        index.append(imm(0) if equal(extent, 1) else i if outer else i % to_prim_expr(extent))
    return index


def _reshape_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, wanted = args
    assert isinstance(x, np.ndarray)
    assert isinstance(wanted, tuple)
    sizes = tuple(n for n in wanted if isinstance(n, int))
    try:
        return x.reshape(sizes)  # one may be -1
    except ValueError:
        raise UnityError(
            f"reshape: {x.size} elements of shape {x.shape} don't fit {sizes}"
        ) from None


def _flatten_infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    if not isinstance(x.shape, tuple):
        return TensorType(1, x.dtype)
    return TensorType((as_dim(product(x.shape)),), x.dtype)


def _flatten_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    return x.reshape(-1)


def _new_axes(call: OpCall, ndim: int) -> tuple[int, ...]:
    given = call.attrs["axis"]
    count = len(given) if isinstance(given, tuple) else 1
    return axes(call, given, ndim + count, "axis")


def _expand_infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    if x.ndim is None:
        return TensorType(None, x.dtype)
    added = _new_axes(call, x.ndim)
    if not isinstance(x.shape, tuple):
        return TensorType(x.ndim + len(added), x.dtype)
    old = iter(x.shape)
    rank = x.ndim + len(added)
    return TensorType(tuple(1 if d in added else next(old) for d in range(rank)), x.dtype)


def _expand_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    dims, _ = known(result)
    added = {a % len(dims) for a in _axis_list(attrs)}

    def element(*i: PrimExpr) -> PrimExpr:
        return x[tuple(v for d, v in enumerate(i) if d not in added)]

    return te.compute(dims, element, "expand_dims")


def _axis_list(attrs: Attrs) -> tuple[int, ...]:
    given = attrs["axis"]
    return (given,) if isinstance(given, int) else ints_attr(attrs, "axis")


def _expand_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    return np.expand_dims(x, _axis_list(attrs))


def _squeeze_infer(call: OpCall) -> Type:
    x = tensor(call, 0)
    given = call.attrs["axis"]
    if x.ndim is None or (given is None and not isinstance(x.shape, tuple)):
        return TensorType(None, x.dtype)
    if given is not None:
        dropped = axes(call, given, x.ndim, "axis")
    else:
        assert isinstance(x.shape, tuple)
        dropped = tuple(d for d, e in enumerate(x.shape) if equal(e, 1))
    if not isinstance(x.shape, tuple):
        return TensorType(x.ndim - len(dropped), x.dtype)
    for d in dropped:
        if not equal(x.shape[d], 1):
            raise call.error(
                f"axis {d} of {type_text(x)} has extent {dim_text(x.shape[d])}, not 1",
                hint=None if isinstance(x.shape[d], int) else "say that it is 1 with match_cast",
            )
    return TensorType(tuple(e for d, e in enumerate(x.shape) if d not in dropped), x.dtype)


def _squeeze_compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    (x,) = args
    assert isinstance(x, te.Tensor)
    dims, _ = known(result)
    if attrs["axis"] is None:
        dropped = {d for d, e in enumerate(dims_of(x)) if equal(e, 1)}
    else:
        dropped = {a % x.ndim for a in _axis_list(attrs)}

    def element(*i: PrimExpr) -> PrimExpr:
        kept = iter(i)
        return x[tuple(imm(0) if d in dropped else next(kept) for d in range(x.ndim))]

    return te.compute(dims, element, "squeeze")


def _squeeze_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (x,) = args
    assert isinstance(x, np.ndarray)
    return np.squeeze(x, None if attrs["axis"] is None else _axis_list(attrs))


def _reshape_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c = s.shape(3, 2, 4)
    cases: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((a, b, c), (a * b, c)),
        ((a, b * c), (a, b, c)),
        ((a, b, c), (-1,)),
        ((a, b, c), (c, -1, b)),
        ((1, a, 1, b), (a, 1, b)),
        ((1,), ()),
        ((), (1, 1)),
        ((0, a), (a, 0)),
        ((0, a, b), (-1, b)),
    ]
    kinds = ("float32", "int64", "float16", "bool")
    return [
        sample(_RESHAPE, (s.array(old, kinds[n % 4]), new)) for n, (old, new) in enumerate(cases)
    ]


def _flatten_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    return [sample(_X, (s.array(n),)) for n in (s.shape(3), s.shape(1), (), (2, 0))]


def _expand_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    places: list[int | tuple[int, ...]] = [0, -1, 1, (0, 2), (-1, 0)]
    return [
        *(sample(_EXPAND, (s.array(s.shape(2)),), axis=p) for p in places),
        sample(_EXPAND, (s.array((), "int32"),), axis=0),
        sample(_EXPAND, (s.array((0, 3)),), axis=1),
    ]


def _squeeze_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2, 2, 4)
    return [
        sample(_SQUEEZE, (s.array((1, a, 1, b)),)),
        sample(_SQUEEZE, (s.array((1, a, 1, b), "int8"),), axis=2),
        sample(_SQUEEZE, (s.array((a, 1, 1)),), axis=(-1, 1)),
        sample(_SQUEEZE, (s.array((1, 1)),)),
        sample(_SQUEEZE, (s.array((0, 1)),), axis=1),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "reshape",
        _RESHAPE,
        _reshape_infer,
        _reshape_reference,
        """The same elements in row-major order under another shape (R.reshape, ONNX Reshape).

        One dim may be -1: it takes what is left. The element counts must be provably equal. A 0 is
        an extent of zero (ONNX's "copy this dim" is the importer's affair).
        """,
        compute=_reshape_compute,
        pattern="injective",
        samples=_reshape_samples,
    ),
    OpDef(
        "flatten",
        _X,
        _flatten_infer,
        _flatten_reference,
        "The elements of any shape and dtype in row-major order, as a vector (R.flatten).",
        compute=_reshape_compute,
        pattern="injective",
        samples=_flatten_samples,
    ),
    OpDef(
        "expand_dims",
        _EXPAND,
        _expand_infer,
        _expand_reference,
        "Axes of extent 1 added; `axis` counts in the result (R.expand_dims, ONNX Unsqueeze).",
        compute=_expand_compute,
        pattern="injective",
        samples=_expand_samples,
    ),
    OpDef(
        "squeeze",
        _SQUEEZE,
        _squeeze_infer,
        _squeeze_reference,
        "Axes of extent 1 dropped: those of `axis`, or all known to be 1, of any dtype (R.squeeze,"
        " ONNX Squeeze).",
        compute=_squeeze_compute,
        pattern="injective",
        samples=_squeeze_samples,
    ),
)
