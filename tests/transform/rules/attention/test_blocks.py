"""Attention runs block of rows by block of rows: nothing of rows times keys lies in memory."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.transform.tensor.kernels import CPU, assert_same
from unity import te
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, dim
from unity.ir.dtype import dtype
from unity.ir.module import IRModule
from unity.ir.stmt import Allocate, PrimFunc
from unity.ir.types import TensorType
from unity.ir.visit import walk_stmt
from unity.ir.well_formed.verify import verify
from unity.machine.target import Target
from unity.op.infer import infer_call
from unity.op.registry import attr_value
from unity.op.table import OPS
from unity.transform.graph.lower.legalize import make_kernel
from unity.transform.rules.default import schedule

from ..kernels import lowered

WIDE = replace(CPU, vector_bits=512, vector_registers=32, threads=2)
NARROW = replace(CPU, vector_bits=128, threads=1)
TARGETS = [CPU, WIDE, NARROW]
N, M = dim("n"), dim("m")
QUERIES: tuple[Dim, ...] = (1, 2, 4, 9, 16, 20, N)
KEYS: tuple[Dim, ...] = (1, 5, 8, 17, M, N)
SIZES = {"n": (0, 1, 3, 4, 5, 17, 33), "m": (0, 1, 6, 17)}


def attention(
    queries: Dim,
    keys: Dim,
    extra: tuple[str, ...] = (),
    heads: int = 2,
    size: int = 3,
    **attrs: object,
) -> PrimFunc:
    """The kernel; `extra` holds bias and mask as ``full``, ``keys`` or ``heads``."""
    op = OPS["nn.attention"]
    layouts = attrs.get("layouts", ("BLHD", "BLHD", "BLHD", "BLHD"))
    assert isinstance(layouts, tuple)
    lengths = {"B": 1, "H": heads, "D": size}
    types: list[TensorType] = [
        TensorType(tuple({**lengths, "L": n}[a] for a in str(layout)), dtype("float32"))
        for layout, n in zip(layouts, (queries, keys, keys), strict=False)
    ]
    shapes: dict[str, tuple[Dim, ...]] = {
        "full": (queries, keys),
        "keys": (1, 1, 1, keys),
        "heads": (1, heads, queries, keys),
    }
    for kind, of in zip(extra, ("float32", "bool"), strict=False):
        types.append(TensorType(shapes[kind], dtype(of)))
    defaults = {p.name: p.default for p in op.params if p.kind == "attr"}
    full = Attrs({k: attr_value(v) for k, v in {**defaults, **attrs}.items()})
    return make_kernel(op, full, types, infer_call(op, types, full))


def in_blocks(func: PrimFunc) -> bool:
    """Whether every temporary belongs to a block of rows, but masks turned for all of them."""
    allocated = [s.buffer for s in walk_stmt(func.body) if isinstance(s, Allocate)]
    panels = ("panel", "v_reindex", "bias_global", "mask_global")
    return all(b.scope == "local" or b.name in panels for b in allocated)


@pytest.mark.rotated(6)
@pytest.mark.parametrize("target", TARGETS, ids=["avx2", "avx512", "sse"])
@pytest.mark.parametrize(
    ("queries", "keys", "extra"),
    [
        (1, 9, ()),
        (3, 5, ("keys",)),
        (16, 8, ("full",)),
        (21, 7, ("heads", "full")),
        (N, N, ("full",)),
        (N, M, ("keys",)),
        (N, M, ()),
    ],
    ids=str,
)
def test_in_blocks_of_rows(queries: Dim, keys: Dim, extra: tuple[str, ...], target: Target) -> None:
    before = attention(queries, keys, extra, scale=0.5)
    scheduled = schedule(before, target)
    verify(IRModule({"main": scheduled}))
    assert in_blocks(scheduled)
    low = lowered(scheduled, target)
    for n in (0, 3, 21) if queries is N else (1,):
        for m in (0, 5) if keys is M else (1,):
            assert_same(before, scheduled, {"n": n, "m": m})
            assert_same(before, low, {"n": n, "m": m})


@pytest.mark.parametrize(("heads", "turned"), [(2, True), (1, False)])
def test_masks_that_heads_share_are_turned_once(heads: int, turned: bool) -> None:
    """Lanes run over rows, which lie apart in a mask: no head gathers them."""
    before = attention(16, 8, ("full",), heads=heads)
    scheduled = schedule(before, CPU)
    buffers = {s.buffer.name for s in walk_stmt(scheduled.body) if isinstance(s, Allocate)}
    assert ("bias_global" in buffers) is turned
    assert_same(before, lowered(scheduled, CPU), {})


def test_scores_that_are_a_result_stay_whole() -> None:
    q, k = te.placeholder((8, 4), "float32", "q"), te.placeholder((6, 4), "float32", "k")
    d, r, t, j = (te.reduce_axis(n, "r") for n in (4, 6, 6, 6))
    scores = te.compute((8, 6), lambda i, c: te.sum(q[i, d.var] * k[c, d.var], axis=[d]), "s")
    peak = te.compute((8,), lambda i: te.max(scores[i, r.var], axis=[r]), "peak")
    power = te.compute((8, 6), lambda i, c: te.exp(scores[i, c] - peak[i]), "power")
    total = te.compute((8,), lambda i: te.sum(power[i, t.var], axis=[t]), "total")
    y = te.compute(
        (8, 4), lambda i, c: te.sum(power[i, j.var] * total[i] * k[j.var, c], axis=[j]), "y"
    )
    before = te.create_prim_func([q, k, scores, y])
    scheduled = schedule(before, WIDE)
    assert_same(before, scheduled, {})


@pytest.mark.rotated(8)
@pytest.mark.parametrize("seed", range(40))
def test_random_attention_keeps_its_values(seed: int) -> None:
    random = Random(seed)
    target = random.choice(TARGETS)

    def layout() -> str:
        axes = list("BLHD")
        random.shuffle(axes)
        return "".join(axes) if random.randrange(2) else random.choice(["BLHD", "BHLD"])

    kinds = ["full", "keys", "heads"]
    before = attention(
        random.choice(QUERIES),
        random.choice(KEYS),
        tuple(random.choice(kinds) for _ in range(random.randrange(3))),
        heads=random.randrange(1, 4),
        size=random.choice([1, 4, 7]),
        layouts=tuple(layout() for _ in range(4)),
        scale=random.choice([1.0, 0.5]),
    )
    scheduled = schedule(before, target)
    low = lowered(scheduled, target)
    sizes = {name: random.choice(values) for name, values in SIZES.items()}
    assert_same(before, scheduled, sizes)
    assert_same(before, low, sizes)
