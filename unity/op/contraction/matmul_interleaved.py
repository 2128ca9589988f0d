"""Matrix multiplication by weights in panels with the depth in groups, as dot instructions want."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.arith import simplify
from unity.ir.arrays.aligned import paged_copy
from unity.ir.attrs import Attrs
from unity.ir.dtype import FLOAT32, INT32, Array, DType, dtype
from unity.ir.prim_expr import PrimExpr, imm
from unity.ir.types import TensorType, Type
from unity.op.accumulate import narrowed, working_dtype
from unity.op.argument import factor_dtype, tensor, type_text
from unity.op.attribute import DTYPE, INT
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample

from .linear import by_depth

_PARAMS = (
    Param("x"),
    Param("weight"),
    attr("columns", INT),
    attr("out_dtype", DTYPE, None),
)


def interleaved(weight: Array, width: int, group: int, step: int = 1) -> Array:
    """A matrix ``(k, n)`` as ``(n / width, k / group, width, group)``, what is missing zero.

    The groups of depth are a multiple of `step`.
    """
    k, n = weight.shape
    padded = np.pad(weight, ((0, -k % (group * step)), (0, -n % width)))
    parts = padded.reshape(-1, group, padded.shape[1] // width, width)
    return paged_copy(parts.transpose(2, 0, 3, 1))


def _matrix(weight: Array, columns: int) -> Array:
    count, steps, width, group = weight.shape
    whole = weight.transpose(1, 3, 0, 2).reshape(steps * group, count * width)
    return whole[:, :columns]


def result_dtype(attrs: Attrs, operands: DType) -> DType:
    """The dtype of a sum: `out_dtype`, or the operands'."""
    given = attrs["out_dtype"]
    return dtype(given) if isinstance(given, str | DType) else operands


def _infer(call: OpCall) -> Type:
    x, weight = tensor(call, 0), tensor(call, 1)
    columns = call.integer("columns")
    operands = factor_dtype(call, (x, weight))
    assert operands is not None
    out = result_dtype(call.attrs, operands)
    if not isinstance(weight.shape, tuple) or len(weight.shape) != 4:
        raise call.error(f"the weight's axes must be panels, steps, columns, group, got {weight}")
    count, steps, width, group = weight.shape
    if not all(isinstance(e, int) for e in weight.shape):
        raise call.error(f"the weight's extents must be known, got {type_text(weight)}")
    assert isinstance(count, int)
    assert isinstance(steps, int)
    assert isinstance(width, int)
    assert isinstance(group, int)
    if columns < 0 or columns > count * width:
        raise call.error(f"{count} panels of {width} columns do not hold {columns}")
    if x.ndim == 0:
        raise call.error("a scalar can't be multiplied as a matrix", hint="use multiply")
    if not isinstance(x.shape, tuple):
        return TensorType(x.ndim, out)
    depth = x.shape[-1]
    if not isinstance(depth, int) or depth > steps * group:
        raise call.error(
            f"the columns of {type_text(x)} must be at most the {steps * group} rows of the weight"
        )
    return TensorType((*x.shape[:-1], columns), out)


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, weight = args
    assert isinstance(x, np.ndarray)
    assert isinstance(weight, np.ndarray)
    out = result_dtype(attrs, dtype(weight.dtype))
    wide = np.dtype(np.float64) if out.is_float else out.numpy
    plain = _matrix(weight, int_attr(attrs, "columns")).astype(wide)
    plain = plain[: x.shape[-1]]
    return np.asarray(np.matmul(x.astype(wide), plain)).astype(out.numpy)


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, weight = args
    assert isinstance(x, te.Tensor)
    assert isinstance(weight, te.Tensor)
    assert isinstance(result, TensorType)
    assert isinstance(result.shape, tuple)
    assert result.dtype
    out = result.dtype
    wide = working_dtype(out)
    _, steps, width, group = weight.shape
    k, p = te.reduce_axis(steps, "k"), te.reduce_axis(group, "p")
    depth = x.shape[-1]
    whole = simplify(steps * group) == depth

    def product(*index: PrimExpr) -> te.Reduce:
        *before, n = index
        at = k.var * group + p.var
        left: PrimExpr = x[(*before, at)]
        if not whole:
            left = te.select(at < depth, left, imm(0, x.dtype))
        right = weight[(n // width, k.var, n % width, p.var)]
        return te.sum(te.cast(left, wide) * te.cast(right, wide), axis=[k, p])

    total = te.compute(result.shape, product, "matmul")
    return narrowed(total, out)


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    m, q = s.shape(2)

    def call(
        x: tuple[int, ...], weight: tuple[int, ...], columns: int, kind: str, out: DType | None
    ) -> Sample:
        low, high = (-128, 127) if kind == "int8" else (-3, 3)
        arrays = (s.array(x, kind, low, high), s.array(weight, kind, low, high))
        return sample(_PARAMS, arrays, columns=columns, out_dtype=out)

    mixed = (s.array((m, 18), "uint8", 0, 255), s.array((2, 5, 16, 4), "int8", -128, 127))
    return [
        sample(_PARAMS, mixed, columns=27, out_dtype=INT32),
        call((m, 6), (3, 3, 4, 2), 12, "bfloat16", FLOAT32),
        call((m, 6), (3, 3, 4, 2), 9, "bfloat16", None),
        call((q, m, 8), (1, 2, 5, 4), 4, "int8", INT32),
        call((6,), (2, 3, 2, 2), 3, "float16", FLOAT32),
        call((m, 64), (2, 32, 32, 2), 64, "bfloat16", FLOAT32),
        call((17, 64), (2, 32, 32, 2), 50, "bfloat16", FLOAT32),
        call((0, 4), (2, 2, 2, 2), 4, "float32", None),
        call((m, 37), (2, 32, 16, 2), 27, "bfloat16", FLOAT32),
        call((q, m, 3), (2, 2, 4, 2), 7, "float32", None),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "matmul_interleaved",
        _PARAMS,
        _infer,
        _reference,
        """Matrix product by a matrix in panels of columns, rows in groups that lie together.

        ``(..., m, k) x (panels, k / group, width, group) -> (..., m, columns)``: the element
        ``(k, n)`` of the matrix is ``weight[n // width, k // group, n % width, k % group]``, which
        dot product instructions read as it lies (VNNI layout). Where the weight has more rows than
        x columns, x counts as zero. Sums are of `out_dtype`, by default
        the operands' dtype; floats narrower than float32 are summed in that.
        """,
        compute=_compute,
        multiply_adds=by_depth,
        op_class="contraction",
        pattern="out_fusable",
        samples=_samples,
        precision="never",
        sums=True,
    ),
)
