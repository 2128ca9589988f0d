"""Sums of products by an equation, and the outer product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, dim_text, equal
from unity.ir.dtype import Array
from unity.ir.graph import Expr, Tuple
from unity.ir.types import TensorType, Type
from unity.op.accumulate import exact, rounded
from unity.op.argument import common_dtype, ranked, tensors
from unity.op.attribute import TEXT
from unity.op.registry import OpCall, OpDef, Param, RefArg, Sample, attr
from unity.op.sampling import Sampler, sample

from .einsum_product import einsum, terms

if TYPE_CHECKING:
    from unity.op.emitter import Emitter

_EINSUM = (Param("operands", "tensors"), attr("subscripts", TEXT))
_OUTER = (Param("x1"), Param("x2"))


def _infer(call: OpCall) -> Type:
    operands = tensors(call, 0)
    kind = common_dtype(call, operands)
    if any(t.ndim is None for t in operands):
        return TensorType(None, kind)
    try:
        named, out = terms(str(call.attrs["subscripts"]), [t.ndim or 0 for t in operands])
    except UnityError as error:
        raise call.error(error.message, 'write it as "bij,bjk->bik"') from error
    if len(set(out)) != len(out):
        raise call.error(f"a letter is repeated in the result of {call.attrs['subscripts']!r}")
    extents: dict[str, Dim] = {}
    for name, t in zip(named, operands, strict=True):
        for letter, d in zip(name, t.shape if isinstance(t.shape, tuple) else (), strict=False):
            if not equal(extents.setdefault(letter, d), d):
                raise call.error(
                    f"the axes {letter!r} of {call.attrs['subscripts']!r} are "
                    f"{dim_text(extents[letter])} and {dim_text(d)} long"
                )
    known = all(c in extents for c in out)
    return TensorType(tuple(extents[c] for c in out) if known else len(out), kind)


def _expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    (operands,) = args
    assert isinstance(operands, Tuple)
    equation = str(attrs["subscripts"])
    return einsum(e, equation, operands.fields, lambda a, b: e.op("matmul", a, b))


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    (operands,) = args
    arrays = [a for a in operands if isinstance(a, np.ndarray)]
    wide: list[Any] = [exact(a) for a in arrays]
    return rounded(np.einsum(str(attrs["subscripts"]), *wide), arrays[0])


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b, c, d = s.shape(4, 2, 5)

    def case(equation: str, *shapes: tuple[int, ...], of: str = "float32") -> Sample:
        operands = tuple(s.array(shape, of, -2, 2) for shape in shapes)
        return sample(_EINSUM, (operands,), subscripts=equation)

    return [
        case("ij,jk->ik", (a, b), (b, c)),
        case("bhqd,bhkd->bhqk", (2, a, b, 3), (2, a, c, 3)),
        case("...ij, ...kj", (2, a, b), (2, c, b)),
        case("ab,bc,cd->da", (a, b), (b, c), (c, d)),
        case("ii->i", (a, a)),
        case("ijk->kj", (a, b, c)),
        case("i,j->ij", (a,), (b,), of="float64"),
        case("ij,ij->", (a, b), (a, b)),
        case("ij,jk->ik", (a, b), (b, c), of="int32"),
    ]


def _outer_infer(call: OpCall) -> Type:
    a, b = ranked(call, 0, 1), ranked(call, 1, 1)
    kind = common_dtype(call, (a, b))
    if not isinstance(a.shape, tuple) or not isinstance(b.shape, tuple):
        return TensorType(2, kind)
    return TensorType((*a.shape, *b.shape), kind)


def _outer_expand(e: Emitter, args: Sequence[Expr], attrs: Attrs, result: Type) -> Expr:
    a, b = args
    return e.op("multiply", e.op("expand_dims", a, 1), e.op("expand_dims", b, 0))


def _outer_reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    a, b = (x for x in args if isinstance(x, np.ndarray))
    return rounded(np.multiply.outer(exact(a), exact(b)), a)


def _outer_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    a, b = s.shape(2, 2, 5)
    return [
        sample(_OUTER, (s.array((a,)), s.array((b,)))),
        sample(_OUTER, (s.array((a,), "int32"), s.array((3,), "int32"))),
        sample(_OUTER, (s.array((0,)), s.array((b,)))),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "einsum",
        _EINSUM,
        _infer,
        _reference,
        """The sum of products that an equation says, ``R.einsum((a, b), "bij,bjk->bik")``.

        A letter stands for an axis, ``...`` for leading ones; letters that the result lacks are
        summed over, and without an arrow it has those that stand once, sorted. Several operands
        are multiplied from left to right, by matrix products (R.einsum, numpy, ONNX Einsum).
        """,
        expand=_expand,
        samples=_samples,
        tolerance=1e-4,
    ),
    OpDef(
        "outer",
        _OUTER,
        _outer_infer,
        _outer_reference,
        "``x1[i] * x2[j]`` of two vectors, ``(n,)`` and ``(m,)`` to ``(n, m)`` (R.outer).",
        expand=_outer_expand,
        samples=_outer_samples,
    ),
)
