"""Few sums over much: pieces that threads share, of any extent, with what they leave over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unity
from tests.rotation import examples
from tests.transform.rules.contraction.test_grouped_panels import LANES, TILES, instructions
from tests.transform.rules.families import narrow
from tests.transform.rules.kernels import lowered
from tests.transform.rules.rows.programs import SIZES, random_rows
from tests.transform.rules.rows.test_row_by_row import WIDE
from tests.transform.tensor.kernels import assert_same
from unity import te
from unity.ir.dims import dim
from unity.ir.stmt import For, PrimFunc
from unity.ir.visit import walk_stmt
from unity.machine.machine import Machine
from unity.script import parse
from unity.transform.blocks.access import as_written, collapse
from unity.transform.blocks.extents import number
from unity.transform.blocks.nest import Nest, nest_of, opened
from unity.transform.rules.contraction.split_reduction import (
    SPLIT_REDUCTION,
    Pieces,
    Sums,
    Whole,
)
from unity.transform.rules.default import default_schedule, schedule
from unity.transform.rules.rows import by_row
from unity.transform.rules.table import found_for

EAGER = replace(WIDE, threads=2, machine=Machine(wake_cycles=0))
Values: TypeAlias = npt.NDArray[np.float64]
BODIES: dict[str, tuple[str, tuple[int, ...], Callable[[Values], Values]]] = {
    "all of a vector": ("R.sum(x)", (300_007,), lambda x: x.sum()),
    "long rows": ("R.mean(x, axis=(1,))", (3, 200_001), lambda x: x.mean(1)),
    "few columns": ("R.max(x, axis=(0,))", (100_003, 4), lambda x: x.max(0)),
    "images": ("R.mean(x, axis=(0, 2, 3))", (2, 3, 300, 301), lambda x: x.mean((0, 2, 3))),
    "squares with an epilogue": (
        "R.sqrt(R.sum(R.multiply(x, x), axis=(0,)))",
        (150_000, 2),
        lambda x: np.sqrt((x * x).sum(0)),
    ),
    "position": ("R.argmax(x, axis=1)", (1, 300_001), lambda x: x.argmax(1)),
    "product": (
        "R.matmul(R.permute_dims(x, axes=(1, 0)), x)",
        (50_003, 8),
        lambda x: x.T @ x,
    ),
    "softmax": (
        "R.nn.softmax(x, axis=1)",
        (1, 100_003),
        lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum(),
    ),
    "three softmaxes": (
        "R.nn.softmax(x, axis=1)",
        (3, 40_000),
        lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True),
    ),
}


def source(body: str, shape: tuple[object, ...], out: str) -> str:
    dims = ", ".join(str(e) for e in shape)
    names = "\n".join(f'{e} = dim("{e}")' for e in shape if isinstance(e, str))
    return f"""
{names}

@script.function
def main(x: f32[Tensor, {dims}]) -> {out}:
    return {body}
"""


def result_type(body: str, shape: tuple[object, ...], like: Values) -> str:
    """The annotation of a result with the extents that the body keeps."""
    kind = "i64" if "argmax" in body else "f32"
    dims = ["n" if e == 123_457 else e for e in np.shape(like)]
    return f"{kind}[Tensor" + "".join(f", {e}" for e in dims) + "]"


@pytest.mark.rotated(3)
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("name", BODIES)
def test_known_sizes(name: str, threads: int) -> None:
    body, shape, expected = BODIES[name]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    want = expected(x.astype(np.float64))
    exe = unity.compile(parse(source(body, shape, result_type(body, shape, want))), threads=threads)
    got = exe(x)
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-5 * np.abs(want).max())
    np.testing.assert_array_equal(exe(x), got)  # the same in every run
    assert any("T.parallel" in str(exe.ir(k)) for k in exe.kernels)


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize("body", ["R.sum(x)", "R.nn.softmax(x, axis=0)", "R.max(R.exp(x))"])
def test_any_length(body: str) -> None:
    out = "f32[Tensor, n]" if "softmax" in body else "f32[Tensor]"
    exe = unity.compile(parse(source(body, ("n",), out)), threads=2)
    for n in (1, 15, 31, 33, 4_000, 300_001):
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        e = np.exp(x.astype(np.float64))
        want = (
            x.sum(dtype=np.float64) if "sum" in body else e / e.sum() if "soft" in body else e.max()
        )
        np.testing.assert_allclose(exe(x), want, rtol=1e-4, atol=1e-3)


def stages(func: PrimFunc) -> list[Nest]:
    found = [nest_of(s) for s in opened(func.body)[1]]
    return [n for n in found if n is not None]


@settings(max_examples=examples(8), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_pieces_of_random_reductions(seed: int) -> None:
    random = Random(seed)
    kept = [random.choice([1, 2, 5]) for _ in range(random.randrange(3))]
    over = [random.choice([1, 3, 7, 40]) for _ in range(random.randrange(1, 3))]
    x = te.placeholder([*kept, *over], "float32", "x")
    axes = [te.reduce_axis(e, f"k{i}") for i, e in enumerate(over)]
    join = random.choice([te.sum, te.max])
    total = te.compute(kept, lambda *i: join(x[(*i, *(a.var for a in axes))] + 1.0, axis=axes), "t")
    func = te.create_prim_func([x, total])
    (nest,) = stages(func)
    shaped = collapse(as_written(nest))
    assert shaped.nest.reduction is not None
    axis = random.choice(shaped.nest.reduction.axes)
    pieces = random.randrange(1, 1 + min(3, number(axis.extent) or 1))
    sums = Sums(Whole(nest, found_for(nest, WIDE)), shaped, axis)
    assert SPLIT_REDUCTION.steps is not None
    body = SPLIT_REDUCTION.steps.checked(sums, Pieces(pieces, 1), WIDE)
    assert_same(func, replace(func, body=body, attrs=func.attrs.with_(scheduled=True)), {})


@pytest.mark.rotated(1 / 6)
@pytest.mark.parametrize("n", [0, 1, 16, 33, 70])
def test_pieces_of_unknown_length(n: int) -> None:
    x = te.placeholder((dim("n"), 3), "float32", "x")
    k = te.reduce_axis(dim("n"), "k")
    func = te.create_prim_func([x, te.compute((3,), lambda i: te.sum(x[k.var, i], axis=[k]), "t")])
    done = default_schedule(func, EAGER, {"t": {"pieces": 3, "least": 4}})
    assert "rfactor" in [step.name for step in done.trace]
    assert_same(func, done.func, {"n": n})
    assert_same(func, lowered(done.func, EAGER), {"n": n})


def test_instructions_are_worth_more_than_threads() -> None:
    func = narrow("matmul_interleaved", (40, 65536), (1, 32768, 32, 2), columns=32)
    for machine, dots in ((LANES, "lane_dot"), (TILES, "tile_dot")):
        done = schedule(func, replace(machine, threads=2))
        assert dots in instructions(done)


@pytest.mark.rotated(1 / 6)
@pytest.mark.parametrize("threads", [2, 3])
@settings(max_examples=examples(8), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_random_chains_in_pieces(threads: int, seed: int) -> None:
    random = Random(seed)
    before = random_rows(random)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_row, "LONG", 4)
        scheduled = schedule(before, replace(EAGER, threads=threads))
    low = lowered(scheduled, WIDE)
    sizes = {name: random.choice(values) for name, values in SIZES.items()}
    assert_same(before, scheduled, sizes)
    assert_same(before, low, sizes)


def test_a_row_for_each_thread_is_not_cut() -> None:
    x = te.placeholder((2, 50_000), "float32", "x")
    k = te.reduce_axis(50_000, "k")
    total = te.compute((2,), lambda i: te.sum(x[i, k.var], axis=[k]), "total")
    y = te.compute((2, 50_000), lambda i, j: x[i, j] / total[i], "y")
    func = schedule(te.create_prim_func([x, y]), WIDE)
    shared = [s for s in walk_stmt(func.body) if isinstance(s, For) and s.kind == "parallel"]
    assert [number(s.extent) for s in shared] == [2]
