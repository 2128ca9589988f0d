"""Matrix multiplication."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim
from unity.ir.dtype import INT32, Array, DType, dtype
from unity.ir.prim_expr import Imm, PrimExpr, imm
from unity.ir.types import TensorType, Type
from unity.op.accumulate import working_dtype
from unity.op.algorithm import ALGORITHM, PRODUCTS, check_algorithm
from unity.op.argument import broadcast_shapes, factor_dtype, require_equal, tensor, type_text
from unity.op.attribute import DTYPE
from unity.op.registry import ComputeArg, Extents, OpCall, OpDef, Param, RefArg, Sample, attr
from unity.op.sampling import Sampler, sample

_PARAMS = (Param("x1"), Param("x2"), attr("out_dtype", DTYPE, None), ALGORITHM)


def _infer(call: OpCall) -> Type:
    check_algorithm(call, PRODUCTS)
    a, b = tensor(call, 0), tensor(call, 1)
    operand_dtype = factor_dtype(call, (a, b))
    given = call.attrs["out_dtype"]
    out_dtype = dtype(given) if isinstance(given, str | DType) else operand_dtype
    if a.ndim == 0 or b.ndim == 0:
        raise call.error(
            f"a scalar can't be multiplied as a matrix: {type_text(a)} and {type_text(b)}",
            hint="use multiply",
        )
    if not isinstance(a.shape, tuple) or not isinstance(b.shape, tuple):
        if a.ndim is None or b.ndim is None:
            return TensorType(None, out_dtype)
        return TensorType(max(a.ndim, b.ndim, 2) - (a.ndim == 1) - (b.ndim == 1), out_dtype)
    require_equal(
        call,
        b.shape[max(len(b.shape) - 2, 0)],
        a.shape[-1],
        f"the inner dims of {type_text(a)} and {type_text(b)} differ",
    )
    batch = broadcast_shapes(call, (a.shape[:-2], b.shape[:-2]))
    rows: tuple[Dim, ...] = a.shape[-2:-1]
    columns: tuple[Dim, ...] = b.shape[-1:] if len(b.shape) > 1 else ()
    return TensorType((*batch, *rows, *columns), out_dtype)


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    a, b = args
    assert isinstance(a, np.ndarray)
    assert isinstance(b, np.ndarray)
    given = attrs["out_dtype"]
    out = dtype(given) if isinstance(given, str | DType) else dtype(a.dtype)
    wide = np.dtype(np.float64) if out.is_float else out.numpy
    return np.asarray(np.matmul(a.astype(wide), b.astype(wide))).astype(out.numpy)


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    a, b = args
    assert isinstance(a, te.Tensor)
    assert isinstance(b, te.Tensor)
    assert isinstance(result, TensorType)
    assert isinstance(result.shape, tuple)
    assert result.dtype
    return contraction(a, b, result.shape, result.dtype)


def contraction(a: te.Tensor, b: te.Tensor, shape: Sequence[Dim], out: DType) -> te.Tensor:
    """The matrix product of two tensors, numpy's rules for batch axes and vectors."""
    wide = working_dtype(out)
    k = te.reduce_axis(a.shape[-1], "k")
    rows, columns = len(a.shape) > 1, len(b.shape) > 1
    matrix_axes = rows + columns

    def product(*index: PrimExpr) -> te.Reduce:
        batch = index[: len(index) - matrix_axes]
        row = index[len(batch) : len(batch) + 1] if rows else ()
        column = index[-1:] if columns else ()
        left = a[(*batch_index(a.shape[:-2], batch), *row, k.var)]
        right = b[(*batch_index(b.shape[:-2], batch), k.var, *column)]
        return te.sum(te.cast(left, wide) * te.cast(right, wide), axis=[k])

    result = te.compute(shape, product, "matmul")
    if wide == out:
        return result
    return te.compute(shape, lambda *i: te.cast(result[i], out), "cast")


def batch_index(own: Sequence[PrimExpr], batch: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
    """The index of an operand's own batch axes, given that of the broadcast ones."""
    used = batch[len(batch) - len(own) :]
    return tuple(
        imm(0) if isinstance(extent, Imm) and extent.value == 1 else index
        for extent, index in zip(own, used, strict=True)
    )


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    m, k, n, p, q = s.shape(5)
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((m, k), (k, n)),
        ((k,), (k,)),
        ((k,), (k, n)),
        ((m, k), (k,)),
        ((p, m, k), (p, k, n)),
        ((p, m, k), (k, n)),
        ((m, k), (p, k, n)),
        ((p, 1, m, k), (q, k, n)),
        ((q, p, m, k), (k,)),
        ((0, k), (k, n)),
        ((m, 0), (0, n)),
        ((m, k), (k, 0)),
    ]
    kinds = ["float32", "float64", "float16", "int32"]
    found = [
        sample(_PARAMS, (s.array(a, kind), s.array(b, kind)))
        for i, (a, b) in enumerate(shapes)
        for kind in dict.fromkeys(("float32", kinds[i % len(kinds)]))
    ]
    wide = (s.array((m, k), "int8", -128, 127), s.array((k, n), "int8", -128, 127))
    mixed = (s.array((m, k), "uint8", 0, 255), wide[1])
    return [*found, *(sample(_PARAMS, args, out_dtype=INT32) for args in (wide, mixed))]


def by_depth(operands: Sequence[Extents], result: Extents) -> float:
    """Products that a matrix product adds up: over the last axis of the first operand."""
    first = operands[0]
    return prod(result) * (first[-1] if first else 1)


OPS: tuple[OpDef, ...] = (
    OpDef(
        "matmul",
        _PARAMS,
        _infer,
        _reference,
        """Matrix product: ``(..., m, k) x (..., k, n) -> (..., m, n)``.

        Leading axes broadcast; a vector counts as a row on the left, as a column on the right, and
        its axis is dropped (numpy.matmul, R.matmul, ONNX MatMul). float16 and bfloat16 accumulate
        in float32; integers wrap in `out_dtype`, which is the operands' dtype unless given. With
        it, uint8 and int8 may meet.
        """,
        compute=_compute,
        multiply_adds=by_depth,
        op_class="contraction",
        pattern="out_fusable",
        samples=_samples,
        precision="always",
    ),
)
