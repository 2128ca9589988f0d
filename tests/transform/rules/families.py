"""Kernels of every rule: what random legal decisions are drawn for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from tests.transform.rules.attention.test_blocks import attention
from tests.transform.rules.contraction.test_grouped_panels import LANES, TILES
from tests.transform.rules.test_cache_chunks import MOST, OWN, SUM, windows
from tests.transform.tensor.kernels import KERNELS
from unity import te
from unity.ir.dims import Dim, dim
from unity.ir.dtype import BFLOAT16, FLOAT32
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.transform.rules.decisions import AppliedRule, Decisions

from .kernels import cell, unscheduled

TARGET = Target("cpu", "x86_64-unknown-linux-gnu", "generic", ("avx2",), 128, 16, threads=2)
"""Four lanes keep the interpreter's work small."""
N, K, H, W = dim("n"), dim("k"), dim("h"), dim("w")
SHORT = dim("s", typical=3)


@dataclass(frozen=True, slots=True)
class Family:
    """A kernel whose first rule is one, and sizes to run it at."""

    rule: str
    make: Callable[[], PrimFunc]
    sizes: Mapping[str, int]
    target: Target = TARGET


def op(name: str, *shapes: tuple[Dim, ...], **attrs: int | bool | tuple[int, ...]) -> PrimFunc:
    """The unscheduled kernel of an operator."""
    return unscheduled(name, shapes, attrs)[0]


def narrow(name: str, *shapes: tuple[Dim, ...], **attrs: int) -> PrimFunc:
    """The same of bfloat16 numbers, summed in float32."""
    return unscheduled(name, shapes, {**attrs, "out_dtype": FLOAT32}, BFLOAT16)[0]


def pooled() -> PrimFunc:
    """The greatest of bfloat16 pixels in blocks of channels."""
    attrs = {"pool_size": (3, 3, 1), "padding": (1, 1, 0, 1, 1, 0)}
    return unscheduled("nn.max_pool3d", ((1, 1, 4, 6, 8),), attrs, BFLOAT16)[0]


def named(name: str) -> PrimFunc:
    """One of the kernels made with te."""
    return next(k for k in KERNELS if k.name == name).make()


def trapping() -> PrimFunc:
    """Sums of quotients, which are computed at no other point."""
    x, z = te.placeholder((3, 5), "int32", "x"), te.placeholder((5,), "int32", "z")
    k = te.reduce_axis(5, "k")
    y = te.compute((3,), lambda i: te.sum(x[i, k.var] // z[k.var], [k]), "y")
    return te.create_prim_func([x, z, y])


def on_tiles(queries: int, keys: int) -> PrimFunc:
    """Attention of bfloat16 numbers, one head of 32."""
    q, k, v = ((1, n, 1, size) for n, size in ((queries, 32), (keys, 32), (keys, 7)))
    return unscheduled("nn.attention", (q, k, v), {"scale": 0.125}, BFLOAT16)[0]


FAMILIES = [
    Family("packed", partial(op, "matmul_packed", (13, 24), (3, 24, 8), columns=21), {}),
    Family("packed", partial(op, "matmul_packed", (N, 12), (2, 12, 8), columns=16), {"n": 11}),
    Family("packed", partial(op, "matmul_packed", (N, K), (2, K, 8), columns=9), {"n": 7, "k": 6}),
    Family(
        "packed",
        partial(op, "matmul_packed", (N, 12), (2, 12, 8), columns=12, chunks=2),
        {"n": 9},
    ),
    Family("packed_read", partial(cell, 5, 2), {}),
    Family("packed_read", partial(cell, "n", 6), {"n": 7}),
    Family("packed", partial(op, "matmul_packed", (2, 1, 24), (2, 2, 24, 8), columns=16), {}),
    Family(
        "blocked_unpadded",
        partial(op, "nn.conv2d_blocked", (1, 2, 5, 9, 4), (3, 2, 3, 3, 4, 4), padding=1),
        {},
    ),
    Family(
        "blocked_unpadded",
        partial(
            narrow,
            "nn.conv2d_blocked",
            *((1, 2, 3, 5, 8), (2, 1, 3, 3, 1, 8)),
            depthwise=True,
            padding=1,
        ),
        {},
    ),
    Family(
        "blocked",
        partial(op, "nn.conv2d_blocked", (1, 2, 6, 6, 4), (4, 2, 1, 1, 4, 4)),
        {},
    ),
    Family(
        "blocked_unpadded",
        partial(
            op,
            "nn.conv2d_blocked",
            *((1, 2, H, W, 4), (2, 1, 3, 3, 1, 4)),
            depthwise=True,
            padding=1,
        ),
        {"h": 4, "w": 9},
    ),
    Family(
        "blocked_unpadded",
        partial(op, "nn.conv3d_blocked", (1, 1, 3, 3, 5, 4), (2, 1, 3, 3, 3, 4, 4), padding=1),
        {},
    ),
    Family(
        "gathered_unpadded",
        partial(
            op, "nn.conv3d_blocked", (1, 1, 2, SHORT, SHORT, 4), (4, 1, 3, 3, 3, 4, 4), padding=1
        ),
        {"s": 5},
    ),
    Family("blocked_unpadded", pooled, {}),
    Family(
        "blocked",
        partial(op, "nn.conv2d_blocked", (N, 2, H, W, 4), (3, 2, 1, 1, 4, 4)),
        {"n": 2, "h": 3, "w": 5},
    ),
    Family(
        "gathered_unpadded",
        partial(op, "nn.conv2d_blocked", (1, 1, SHORT, SHORT, 4), (4, 1, 3, 3, 4, 4), padding=1),
        {"s": 5},
    ),
    Family(
        "winograd",
        partial(op, "nn.conv2d_winograd", (1, 2, 9, 6, 4), (6, 6, 4, 2, 4, 4), tile=4, padding=1),
        {},
    ),
    Family(
        "winograd",
        partial(op, "nn.conv2d_winograd", (1, 1, H, W, 4), (6, 6, 2, 1, 4, 4), tile=4),
        {"h": 6, "w": 9},
    ),
    Family(
        "winograd",
        partial(op, "nn.conv2d_winograd", (1, 1, 7, 6, 4), (4, 4, 2, 1, 4, 4), tile=2),
        {},
    ),
    Family(
        "winograd",
        partial(op, "nn.conv2d_winograd", (1, 1, H, W, 4), (4, 4, 2, 1, 4, 4), tile=2, padding=1),
        {"h": 4, "w": 7},
    ),
    Family(
        "winograd",
        partial(
            op, "nn.conv3d_winograd", (1, 1, 3, 7, 6, 4), (6, 6, 2, 3, 4, 4), tile=4, padding=1
        ),
        {},
    ),
    Family(
        "winograd",
        partial(
            op, "nn.conv3d_winograd", (1, 2, N, H, W, 4), (6, 6, 2, 6, 4, 4), tile=4, padding=1
        ),
        {"n": 2, "h": 6, "w": 9},
    ),
    Family("cache_chunks", partial(windows, 3, 7, 1, SUM, "0.0", OWN), {}),
    Family("cache_chunks", partial(windows, 2, 9, 2, MOST, "-3.0", OWN), {}),
    Family("cache_chunks", partial(windows, 3, 7, 1, SUM, "0.0", "w[vi % 3, vp, vq]"), {}),
    Family("attention", partial(attention, 9, 7), {}),
    Family("attention", partial(attention, 8, 7), {}),
    Family("attention", partial(attention, 12, 5, ("full",)), {}),
    Family("attention", partial(attention, 2, 9), {}),
    Family("attention", partial(attention, N, 8), {"n": 17}),
    Family("chain_tiles", partial(on_tiles, 35, 5), {}, TILES),
    Family("chain_tiles", partial(on_tiles, 64, 3), {}, replace(TILES, threads=8)),
    Family("transpose", partial(named, "transpose"), {"n": 19, "m": 5}),
    Family("pad", partial(named, "conv"), {"n": 1}),
    Family("fallback", partial(named, "argmax"), {"n": 5, "m": 7}),
    Family(
        "matrix_tiles",
        partial(narrow, "matmul_interleaved", (33, 32), (1, 16, 32, 2), columns=20),
        {},
        TILES,
    ),
    Family(
        "matrix_tiles",
        partial(narrow, "matmul_interleaved", (N, 32), (2, 16, 16, 2), columns=20),
        {"n": 19},
        TILES,
    ),
    Family(
        "matrix_tiles",
        partial(narrow, "matmul_interleaved", (N, 31), (1, 16, 32, 2), columns=20),
        {"n": 5},
        TILES,
    ),
    Family(
        "lane_dots",
        partial(narrow, "matmul_interleaved", (9, 32), (2, 16, 16, 2), columns=20),
        {},
        LANES,
    ),
    Family(
        "lane_dots",
        partial(narrow, "matmul_interleaved", (N, 31), (2, 16, 16, 2), columns=20),
        {"n": 5},
        LANES,
    ),
    Family(
        "interleaved",
        partial(narrow, "nn.conv2d_interleaved", (1, 1, 3, 5, 32), (2, 1, 1, 1, 16, 16, 2)),
        {},
        TILES,
    ),
    Family(
        "interleaved",
        partial(narrow, "nn.conv2d_interleaved", (1, 1, 4, 6, 32), (1, 1, 2, 2, 16, 32, 2)),
        {},
        TILES,
    ),
    Family(
        "interleaved",
        partial(narrow, "nn.conv2d_interleaved", (1, 1, 4, 19, 32), (1, 1, 2, 1, 16, 16, 2)),
        {},
        TILES,
    ),
    Family(
        "interleaved_lanes",
        partial(narrow, "nn.conv2d_interleaved", (1, 1, 2, 3, 32), (1, 1, 1, 1, 16, 32, 2)),
        {},
        LANES,
    ),
    Family(
        "interleaved_lanes",
        partial(narrow, "nn.conv2d_interleaved", (1, 1, 4, 9, 32), (2, 1, 2, 2, 16, 16, 2)),
        {},
        LANES,
    ),
    Family("rows", partial(op, "nn.softmax", (1, N)), {"n": 37}),
    Family("rows", partial(named, "softmax"), {"n": 3, "m": 37}),
    Family("rows", partial(op, "nn.log_softmax", (3, 2, N)), {"n": 21}),
    Family("rows", partial(op, "nn.softmax", (N, 96)), {"n": 3}),
    Family("rows", partial(op, "nn.layer_norm", (2, 3, 36), (36,), (36,), axes=(2,)), {}),
    Family("elementwise", partial(named, "channels"), {"n": 3}),
    Family("contraction", partial(named, "matmul"), {"n": 33, "m": 3}),
    Family("contraction", partial(op, "nn.conv2d", (1, 3, 9, 7), (4, 3, 3, 3)), {}),
    Family(
        "windows",
        partial(op, "nn.conv2d", (1, 2, 9, 11), (2, 1, 3, 3), groups=2),
        {},
    ),
    Family(
        "windows",
        partial(op, "nn.max_pool2d", (1, 2, H, W), pool_size=(3, 3), strides=2),
        {"h": 7, "w": 13},
    ),
    Family("streamed", partial(op, "matmul", (1, 19), (19, 70)), {}),
    Family("streamed", partial(op, "matmul", (1, K), (K, N)), {"k": 11, "n": 37}),
    Family("streamed", partial(named, "column_max"), {"n": 7, "m": 41}),
    Family("dot_products", partial(named, "row_sum"), {"n": 5, "m": 9}),
    Family("dot_products", partial(op, "matmul", (7, 13), (13, 1)), {}),
    Family("plain", trapping, {}),
    Family("split_reduction", partial(named, "whole_sum"), {"n": 5, "m": 37}),
]


def drawn(rules: Sequence[AppliedRule], random: Random) -> Decisions:
    """A legal value for one decision of each rule."""
    changes: dict[str, dict[str, int]] = {}
    for rule in rules:
        open_ones = {k: v for k, v in rule.legal.items() if len(v.values) > 1}
        if not open_ones:
            continue
        name = random.choice(sorted(open_ones))
        values = open_ones[name].values
        few = (
            values
            if len(values) < 1000
            else [values[(1 << k) - 1] for k in range(len(values).bit_length())]
        )
        changes[rule.blocks[0]] = {name: random.choice(few)}
    return changes
