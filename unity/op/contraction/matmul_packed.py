"""Matrix multiplication by weights laid out in panels: what packing turns `matmul` into."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unity import te
from unity.ir.arrays.aligned import paged_empty
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim
from unity.ir.dtype import INT32, Array, DType, dtype
from unity.ir.prim_expr import Binary, Imm, PrimExpr, imm
from unity.ir.types import TensorType, Type
from unity.op.accumulate import narrowed, real, working_dtype
from unity.op.argument import broadcast_shapes, common_dtype, require_equal, tensor, type_text
from unity.op.attribute import DTYPE, INT
from unity.op.registry import ComputeArg, OpCall, OpDef, Param, RefArg, Sample, attr, int_attr
from unity.op.sampling import Sampler, sample

from .linear import batch_index, by_depth

_PARAMS = (
    Param("x"),
    Param("weight"),
    attr("columns", INT),
    attr("out_dtype", DTYPE, None),
    attr("chunks", INT, 1),
)


def panels(weight: Array, width: int, chunks: int = 1) -> Array:
    """A matrix ``(..., k, n)`` as ``(..., ceil(n / width), k, width)``, what is missing zero.

    The columns may be as many chunks of equal width: each then has an equal part of every panel.
    """
    *batch, k, n = weight.shape
    columns, part = n // chunks, width // chunks
    count, whole = -(-columns // part), columns // part
    packed = paged_empty((*batch, count, k, width), weight.dtype)
    for i in range(chunks):
        chunk = weight[..., i * columns : (i + 1) * columns]
        into = packed[..., i * part : (i + 1) * part]
        parts = chunk[..., : whole * part].reshape(*batch, k, whole, part)
        into[..., :whole, :, :] = np.swapaxes(parts, -3, -2)
        if whole < count:
            into[..., whole, :, : columns - whole * part] = chunk[..., whole * part :]
            into[..., whole, :, columns - whole * part :] = 0
    return packed


def matrix(packed: Array, columns: int, chunks: int = 1) -> Array:
    """The matrix ``(..., k, columns)`` that panels were made of."""
    *batch, count, k, width = packed.shape
    if chunks > 1:
        apart = packed.reshape(*batch, count, k, chunks, width // chunks)
        each = matrix(np.moveaxis(apart, -2, 0), columns // chunks)
        return np.moveaxis(each, 0, -2).reshape(*batch, k, columns)
    joined = np.swapaxes(packed, -3, -2).reshape(*batch, k, count * width)
    return joined[..., :columns]


def _is_mixed(x: TensorType, weight: TensorType) -> bool:
    """Whether floats of 32 bits or more are multiplied by integers of 8."""
    if x.dtype is None or weight.dtype is None:
        return False
    return (
        x.dtype.is_float and x.dtype.bits >= 32 and weight.dtype.is_int and weight.dtype.bits == 8
    )


def _infer(call: OpCall) -> Type:
    x, weight = tensor(call, 0), tensor(call, 1)
    operand_dtype = x.dtype if _is_mixed(x, weight) else common_dtype(call, (x, weight))
    given = call.attrs["out_dtype"]
    out_dtype = dtype(given) if isinstance(given, str | DType) else operand_dtype
    columns = call.integer("columns")
    if weight.ndim is not None and weight.ndim < 3:
        raise call.error(f"the weight's axes must be panels, k, columns, got {type_text(weight)}")
    if x.ndim == 0:
        raise call.error("a scalar can't be multiplied as a matrix", hint="use multiply")
    if not isinstance(x.shape, tuple) or not isinstance(weight.shape, tuple):
        known = None if x.ndim is None or weight.ndim is None else max(x.ndim, weight.ndim - 1)
        return TensorType(known, out_dtype)
    *batch, count, k, width = weight.shape
    if not isinstance(count, int) or not isinstance(width, int):
        raise call.error(f"number and width of panels must be known, got {type_text(weight)}")
    if columns < 0 or columns > count * width:
        raise call.error(f"{count} panels of {width} columns do not hold {columns}")
    chunks = call.integer("chunks")
    if chunks < 1 or columns % chunks or width % chunks:
        raise call.error(f"{columns} columns in panels of {width} are no {chunks} equal chunks")
    message = f"the inner dims of {type_text(x)} and {type_text(weight)} differ"
    require_equal(call, k, x.shape[-1], message)
    if batch and len(x.shape) == 1:
        raise call.error(f"a vector takes one matrix, got {type_text(weight)}")
    if not batch:
        return TensorType((*x.shape[:-1], columns), out_dtype)
    joined: tuple[Dim, ...] = broadcast_shapes(call, (x.shape[:-2], tuple(batch)))
    return TensorType((*joined, x.shape[-2], columns), out_dtype)


def _reference(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, weight = args
    assert isinstance(x, np.ndarray)
    assert isinstance(weight, np.ndarray)
    given = attrs["out_dtype"]
    out = dtype(given) if isinstance(given, str | DType) else dtype(x.dtype)
    wide = np.dtype(np.float64) if out.is_float else out.numpy
    plain = matrix(weight, int_attr(attrs, "columns"), int_attr(attrs, "chunks")).astype(wide)
    return np.asarray(np.matmul(x.astype(wide), plain)).astype(out.numpy)


def _compute(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, weight = args
    assert isinstance(x, te.Tensor)
    assert isinstance(weight, te.Tensor)
    assert isinstance(result, TensorType)
    assert isinstance(result.shape, tuple)
    assert result.dtype
    wide = working_dtype(result.dtype)
    width, chunks = weight.shape[-1], int_attr(attrs, "chunks")
    each = int_attr(attrs, "columns") // chunks
    k = te.reduce_axis(x.shape[-1], "k")
    batched = len(weight.shape) > 3

    def product(*index: PrimExpr) -> te.Reduce:
        *before, column = index
        at = (column // width, k.var, column % width)
        if chunks > 1:
            assert isinstance(width, Imm)
            part, place = int(width.value) // chunks, column % each
            at = (place // part, k.var, column // each * part + place % part)
        if batched:
            *batch, row = before
            left = x[(*batch_index(x.shape[:-2], batch), row, k.var)]
            right = weight[(*batch_index(weight.shape[:-3], batch), *at)]
        else:
            left, right = x[(*before, k.var)], weight[at]
        return te.sum(te.cast(left, wide) * te.cast(right, wide), axis=[k])

    total = te.compute(result.shape, product, "matmul")
    return narrowed(total, result.dtype)


def _samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    m, k, p = s.shape(3)

    def call(
        x: tuple[int, ...],
        weight: tuple[int, ...],
        columns: int,
        kind: str = "float32",
        chunks: int = 1,
    ) -> Sample:
        arrays = (s.array(x, kind), s.array(weight, kind))
        return sample(_PARAMS, arrays, columns=columns, chunks=chunks)

    wide = (s.array((m, k), "int8", -128, 127), s.array((2, k, 3), "int8", -128, 127))
    narrow = (s.array((m, k)), s.array((3, k, 4), "int8", -128, 127))
    return [
        call((m, k), (3, k, 4), 12),
        sample(_PARAMS, narrow, columns=11),
        call((m, k), (3, k, 4), 9, "float64"),
        call((p, m, k), (2, k, 5), 7),
        call((k,), (2, k, 4), 6, "float16"),
        call((m, k), (1, k, 1), 1),
        call((p, m, k), (p, 2, k, 4), 7),
        call((p, 1, m, k), (2, 2, k, 4), 5),
        call((0, k), (2, k, 4), 6),
        call((m, 0), (2, 0, 4), 6),
        call((m, k), (2, k, 8), 14, chunks=2),
        call((p, m, k), (p, 1, k, 12), 9, chunks=3),
        call((m, k), (0, k, 4), 0),
        sample(_PARAMS, wide, columns=5, out_dtype=INT32),
    ]


_WORD_PARAMS = (
    Param("x"),
    Param("words"),
    Param("scale"),
    Param("shift"),
    attr("columns", INT),
    attr("bits", INT, 4),
)
WORD_BITS = 32
UINT32 = dtype("uint32")


def words(weight: Array, width: int, bits: int) -> Array:
    """A matrix ``(k, n)`` of integers from 0 on as words ``(panels, k / count, width)``.

    A word of 32 bits holds as many rows of a column as it has places for, the first one lowest.
    """
    count = WORD_BITS // bits
    whole = panels(weight.astype(np.uint8), width)
    parts = whole.reshape(whole.shape[0], -1, count, width)
    joined = np.zeros((*parts.shape[:2], width), np.uint32)
    for i in range(count):
        joined |= parts[:, :, i].astype(np.uint32) << np.uint32(i * bits)
    return joined


def _unpacked(packed: Array, bits: int) -> Array:
    """The panels ``(panels, k, width)`` of integers that words hold."""
    count, width = packed.shape[0], packed.shape[2]
    shifts = np.arange(WORD_BITS // bits).reshape(-1, 1) * bits
    apart = (packed[:, :, None, :].astype(np.int64) >> shifts) & ((1 << bits) - 1)
    return apart.reshape(count, -1, width)


def _infer_words(call: OpCall) -> Type:
    x, packed, scale, shift = (tensor(call, i) for i in range(4))
    bits, columns = call.integer("bits"), call.integer("columns")
    if bits not in (2, 4, 8):
        raise call.error(f"'bits' must be 2, 4 or 8, got {bits}")
    if packed.dtype != UINT32:
        raise call.error(f"'words' must be uint32, got {type_text(packed)}")
    result = common_dtype(call, (x, scale, shift))
    shapes = (packed.shape, scale.shape)
    known = [s for s in shapes if isinstance(s, tuple) and len(s) == 3]
    if len(known) < 2 or not all(isinstance(e, int) for s in known for e in s):
        raise call.error("words and scales must be panels of known extents")
    (count, steps, width), (panels_too, blocks, width_too) = known
    assert isinstance(count, int)
    assert isinstance(steps, int)
    assert isinstance(width, int)
    assert isinstance(blocks, int)
    if (count, width) != (panels_too, width_too) or not blocks or steps % blocks:
        raise call.error(f"{type_text(scale)} does not divide {type_text(packed)} in blocks")
    if shift.shape != scale.shape:
        raise call.error(f"'shift' must be like 'scale', got {type_text(shift)}")
    if columns < 0 or columns > count * width:
        raise call.error(f"{count} panels of {width} columns do not hold {columns}")
    if not isinstance(x.shape, tuple) or not x.shape:
        raise call.error(f"'x' must have a known rank of at least 1, got {type_text(x)}")
    depth = steps * (WORD_BITS // bits)
    message = f"the columns of {type_text(x)} are not the {depth} rows of the weight"
    require_equal(call, x.shape[-1], depth, message)
    return TensorType((*x.shape[:-1], columns), result)


def _reference_words(args: Sequence[RefArg], attrs: Attrs) -> Array:
    x, packed, scale, shift = args
    assert isinstance(x, np.ndarray)
    assert isinstance(packed, np.ndarray)
    assert isinstance(scale, np.ndarray)
    assert isinstance(shift, np.ndarray)
    whole = _unpacked(packed, int_attr(attrs, "bits"))
    each = whole.shape[1] // scale.shape[1]
    factor, moved = (np.repeat(real(a), each, axis=1) for a in (scale, shift))
    plain = matrix(real(whole) * factor + moved, int_attr(attrs, "columns"))
    return np.asarray(np.matmul(x.astype(np.float64), plain)).astype(x.dtype)


def _compute_words(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, packed, scale, shift = args
    assert isinstance(x, te.Tensor)
    assert isinstance(packed, te.Tensor)
    assert isinstance(scale, te.Tensor)
    assert isinstance(shift, te.Tensor)
    assert isinstance(result, TensorType)
    assert isinstance(result.shape, tuple)
    assert result.dtype
    wide, bits, width = working_dtype(result.dtype), int_attr(attrs, "bits"), packed.shape[-1]
    count = WORD_BITS // bits
    steps, blocks = number_of(packed.shape[1]), number_of(scale.shape[1])
    b, j = te.reduce_axis(blocks, "b"), te.reduce_axis(count, "j")
    k = te.reduce_axis(steps // blocks, "k")

    def product(*index: PrimExpr) -> te.Reduce:
        *before, column = index
        panel, lane = column // width, column % width
        step = b.var * (steps // blocks) + k.var
        word = packed[(panel, step, lane)]
        moved = te.shift_right(word, te.cast(j.var * bits, UINT32))
        whole = Binary("and", moved, imm((1 << bits) - 1, UINT32))
        factor, offset = (te.cast(t[(panel, b.var, lane)], wide) for t in (scale, shift))
        right = te.cast(te.cast(whole, INT32), wide) * factor + offset
        left = x[(*before, step * count + j.var)]
        return te.sum(te.cast(left, wide) * right, axis=[b, j, k])

    return narrowed(te.compute(result.shape, product, "matmul"), result.dtype)


def number_of(extent: PrimExpr) -> int:
    """An extent that is known."""
    assert isinstance(extent, Imm)
    return int(extent.value)


def _word_samples(seed: int) -> Sequence[Sample]:
    s = Sampler.seeded(seed)
    m, p = s.shape(2)

    def call(x: tuple[int, ...], width: int, blocks: int, columns: int, bits: int) -> Sample:
        count, most = -(-columns // width), (1 << bits) - 1
        packed = words(s.array((x[-1], columns), "int32", 0, most), width, bits)
        scale = s.array((count, blocks, width), low=0.1, high=1)
        given = (s.array(x), packed, scale, s.array((count, blocks, width)))
        return sample(_WORD_PARAMS, given, columns=columns, bits=bits)

    return [
        call((m, 32), 16, 2, 27, 4),
        call((p, m, 64), 32, 1, 64, 4),
        call((48,), 16, 3, 16, 8),
        call((m, 16), 4, 1, 7, 2),
        call((0, 32), 16, 2, 16, 4),
    ]


OPS: tuple[OpDef, ...] = (
    OpDef(
        "matmul_words",
        _WORD_PARAMS,
        _infer_words,
        _reference_words,
        """Matrix product by a matrix of integers of few bits, scaled by blocks as it is read.

        x ``(..., k)``; words ``(p, k / c, w)`` of uint32, each holding `c` rows of a column in
        `bits` bits each, the first one lowest, in panels of `w` columns; scale and shift
        ``(p, blocks, w)`` of equal blocks of rows; result ``(..., columns)``: an element of the
        matrix is ``scale * integer + shift`` (ONNX DequantizeLinear of blocks, the shift being
        ``-scale * zero_point``).
        """,
        compute=_compute_words,
        multiply_adds=by_depth,
        op_class="contraction",
        pattern="out_fusable",
        samples=_word_samples,
        precision="never",
        tolerance=1e-4,
    ),
    OpDef(
        "matmul_packed",
        _PARAMS,
        _infer,
        _reference,
        """Matrix product by a matrix in panels of columns, each contiguous.

        x ``(..., m, k)`` or ``(k,)``, weight ``(..., p, k, w)``, result ``(..., m, columns)``:
        column `n` of the matrix is column ``n % w`` of panel ``n // w``; those from `columns` on
        are not used. With `chunks`, the columns are as many chunks of equal width, and chunk `c`
        has part `c` of each panel: what is said of columns holds within a chunk. Batch axes,
        dtypes and `out_dtype` as in matmul; a float32 or float64 x takes int8 and uint8, too.
        """,
        compute=_compute,
        multiply_adds=by_depth,
        op_class="contraction",
        pattern="out_fusable",
        samples=_samples,
        precision="always",
    ),
)
