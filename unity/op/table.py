"""The table of all operators, from the explicit list of families. Nothing registers itself."""

from __future__ import annotations

from . import create, effects, memory, shape
from .contraction import attention, cache, linear, matmul_interleaved, matmul_packed
from .convolution import (
    adaptive_pool,
    conv,
    conv_blocked,
    conv_interleaved,
    conv_transpose,
    conv_winograd,
    pool,
)
from .elementwise import activation, binary, compare, datatype, quantize, unary
from .indexing import gather, one_hot, scatter, search
from .ml import coupling, tree
from .movement import arrange, join, pad, phases, repeat, slicing, view
from .normalization import batch_norm, group_norm, lrn, norm
from .ordering import sort
from .reduction import reduce, scan, softmax
from .registry import OpDef
from .vision import suppression

FAMILIES: tuple[tuple[OpDef, ...], ...] = (
    unary.OPS,
    binary.OPS,
    compare.OPS,
    reduce.OPS,
    create.OPS,
    datatype.OPS,
    quantize.OPS,
    shape.OPS,
    search.OPS,
    linear.OPS,
    matmul_interleaved.OPS,
    matmul_packed.OPS,
    conv.OPS,
    conv_blocked.OPS,
    conv_interleaved.OPS,
    conv_transpose.OPS,
    conv_winograd.OPS,
    pool.OPS,
    adaptive_pool.OPS,
    batch_norm.OPS,
    norm.OPS,
    group_norm.OPS,
    lrn.OPS,
    activation.OPS,
    softmax.OPS,
    attention.OPS,
    cache.OPS,
    view.OPS,
    arrange.OPS,
    phases.OPS,
    repeat.OPS,
    join.OPS,
    pad.OPS,
    slicing.OPS,
    gather.OPS,
    one_hot.OPS,
    scatter.OPS,
    scan.OPS,
    sort.OPS,
    suppression.OPS,
    coupling.OPS,
    tree.OPS,
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
