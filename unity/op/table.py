"""The table of all operators, from the explicit list of families. Nothing registers itself."""

from __future__ import annotations

from . import create, effects, formulas, losses, memory, scalar, shape
from .contraction import (
    attention,
    attention_bias,
    attention_var_len,
    cache,
    einsum,
    linear,
    matmul_interleaved,
    matmul_packed,
)
from .convolution import (
    adaptive_pool,
    conv,
    conv_blocked,
    conv_interleaved,
    conv_transpose,
    conv_winograd,
    pool,
    pool_backward,
)
from .elementwise import activation, binary, compare, datatype, dropout, quantize, ternary, unary
from .image import grid, resize
from .indexing import (
    bucketize,
    gather,
    index_tensor,
    one_hot,
    scatter,
    search,
    take_backward,
)
from .ml import coupling, tree
from .movement import (
    arrange,
    dynamic_slice,
    join,
    layout_transform,
    meshgrid,
    pad,
    phases,
    pixel_shuffle,
    repeat,
    roll,
    slicing,
    view,
)
from .normalization import batch_norm, group_norm, lrn, norm
from .ordering import sort, unique
from .reduction import reduce, scan, softmax, statistics
from .registry import OpDef
from .vision import all_class, detections, regions, suppression

FAMILIES: tuple[tuple[OpDef, ...], ...] = (
    unary.OPS,
    binary.OPS,
    compare.OPS,
    ternary.OPS,
    reduce.OPS,
    statistics.OPS,
    create.OPS,
    formulas.OPS,
    datatype.OPS,
    quantize.OPS,
    shape.OPS,
    scalar.OPS,
    search.OPS,
    linear.OPS,
    einsum.OPS,
    matmul_interleaved.OPS,
    matmul_packed.OPS,
    conv.OPS,
    conv_blocked.OPS,
    conv_interleaved.OPS,
    conv_transpose.OPS,
    conv_winograd.OPS,
    pool.OPS,
    adaptive_pool.OPS,
    pool_backward.OPS,
    batch_norm.OPS,
    norm.OPS,
    group_norm.OPS,
    lrn.OPS,
    activation.OPS,
    dropout.OPS,
    softmax.OPS,
    attention.OPS,
    attention_bias.OPS,
    attention_var_len.OPS,
    cache.OPS,
    view.OPS,
    arrange.OPS,
    phases.OPS,
    pixel_shuffle.OPS,
    layout_transform.OPS,
    roll.OPS,
    meshgrid.OPS,
    repeat.OPS,
    join.OPS,
    pad.OPS,
    slicing.OPS,
    dynamic_slice.OPS,
    gather.OPS,
    take_backward.OPS,
    one_hot.OPS,
    scatter.OPS,
    index_tensor.OPS,
    bucketize.OPS,
    scan.OPS,
    sort.OPS,
    unique.OPS,
    suppression.OPS,
    detections.OPS,
    all_class.OPS,
    resize.OPS,
    grid.OPS,
    regions.OPS,
    coupling.OPS,
    tree.OPS,
    losses.OPS,
    effects.OPS,
    memory.OPS,
)


def _table(families: tuple[tuple[OpDef, ...], ...]) -> dict[str, OpDef]:
    table: dict[str, OpDef] = {}
    for family in families:
        for op in family:
            assert op.name not in table, f"two operators are named {op.name}"
            table[op.name] = op
    return table


OPS: dict[str, OpDef] = _table(FAMILIES)
OF_ONNX: dict[str, OpDef] = {op.onnx: op for op in OPS.values() if op.onnx is not None}
"""By the name of ONNX's operator that computes the same."""
