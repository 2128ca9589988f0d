"""Attention in bfloat16 on matrix tiles: interpreted and compiled, against float32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import unity
from tests.codegen.llvm.run_kernel import HOST
from tests.transform.rules.contraction.test_grouped_panels import LANES, TILES, instructions
from tests.transform.rules.kernels import lowered
from tests.transform.schedule.printed import difference, run_printed
from tests.transform.tensor.kernels import assert_same
from unity.interpreter import interpret
from unity.ir.dtype import BFLOAT16, FLOAT32
from unity.ir.module import IRModule
from unity.machine.dot_units import has_dot
from unity.script import parse
from unity.transform import Context, pipeline
from unity.transform.graph import LowerCalls
from unity.transform.schedule import ScheduleDefault, default_schedule

Float = npt.NDArray[np.float32]


def attention(q: tuple[int, ...], keys: int, width: int, mask: bool) -> IRModule:
    """Of q (B, L, H, D) on so many keys, values of some width."""
    b, _, h, d = q
    extra = f", m: f32[Tensor, {b}, 1, 1, {keys}]" if mask else ""
    return parse(f"""
@script.function
def main(
    q: f32[Tensor, {", ".join(map(str, q))}],
    k: f32[Tensor, {b}, {keys}, {h}, {d}],
    v: f32[Tensor, {b}, {keys}, {h}, {width}]{extra}
) -> f32[Tensor, {b}, {q[1]}, {h}, {width}]:
    return R.nn.attention(q, k, v{", m" if mask else ""}, scale=0.125)
""")


def operands(q: tuple[int, ...], keys: int, width: int, mask: bool) -> list[Float]:
    rng = np.random.default_rng(keys)
    b, _, h, d = q
    shapes = (q, (b, keys, h, d), (b, keys, h, width))
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    if mask:
        masked = np.zeros((b, 1, 1, keys), np.float32)
        masked[..., keys // 2 + 1 :] = np.finfo(np.float32).min
        arrays.append(masked)
    return arrays


CASES = [
    ((1, 32, 2, 32), 32, 32, False),
    ((1, 17, 1, 32), 33, 40, True),
    ((2, 16, 1, 32), 5, 7, True),
    ((1, 50, 1, 64), 37, 16, True),
]


@pytest.mark.rotated(1 / 6)
@pytest.mark.parametrize(("q", "keys", "width", "mask"), CASES[1:3])
def test_interpreted(q: tuple[int, ...], keys: int, width: int, mask: bool) -> None:
    module = attention(q, keys, width, mask)
    arrays = operands(q, keys, width, mask)
    passes = pipeline(precision="bf16").until(LowerCalls)
    low = passes.run(module, Context(replace(TILES, threads=2)))
    assert any("tile_dot" in instructions(f) for f in low.prim_funcs().values())
    want, got = (interpret(m, "main", arrays) for m in (module, low))
    close(got, want)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("q", "keys", "width", "mask"), [*CASES, ((1, 300, 1, 64), 300, 64, True)])
def test_compiled(q: tuple[int, ...], keys: int, width: int, mask: bool, threads: int) -> None:
    if not has_dot(HOST, "tile", BFLOAT16, BFLOAT16, FLOAT32):
        pytest.skip("no tiles here")
    module = attention(q, keys, width, mask)
    arrays = operands(q, keys, width, mask)
    exact, rounded = (
        unity.compile(module, target=replace(HOST, threads=threads), precision=p)
        for p in ("f32", "bf16")
    )
    close(rounded(*arrays), exact(*arrays))


def close(got: object, want: object) -> None:
    assert isinstance(got, np.ndarray)
    assert isinstance(want, np.ndarray)
    scale = float(np.abs(want).max())
    np.testing.assert_allclose(
        got.astype(np.float64), want.astype(np.float64), rtol=0, atol=0.01 * scale
    )


def kernels(module: IRModule, context: Context) -> set[str]:
    low = pipeline(precision="bf16").until(LowerCalls).run(module, context)
    return {name for f in low.prim_funcs().values() for name in instructions(f)}


@pytest.mark.rotated(3)
@pytest.mark.long("a program of 500 steps, each checked, and kernels of tiles interpreted")
@pytest.mark.parametrize(
    ("q", "keys", "width", "threads"),
    [((1, 40, 2, 32), 9, 7, 1), ((1, 40, 1, 32), 9, 7, 8), ((1, 64, 1, 32), 5, 33, 8)],
)
def test_blocks_of_rows_are_programs_of_steps(
    q: tuple[int, ...], keys: int, width: int, threads: int
) -> None:
    """One set after another, or blocks as tasks; with rows left over, and without."""
    module, target = attention(q, keys, width, mask=True), replace(TILES, threads=threads)
    before = pipeline(precision="bf16").until(ScheduleDefault).run(module, Context(target))
    func = before.prim_funcs()["attention"]
    sch = default_schedule(func, target, {"scores": {"height": 32}})
    assert difference(sch.func, run_printed(sch, "attention").func) is None
    assert "tile_dot" in instructions(sch.func)
    assert_same(func, sch.func, {})
    assert_same(func, lowered(sch.func, target), {})


def test_few_rows_and_other_targets_have_no_tiles() -> None:
    module = attention((1, 32, 2, 32), 32, 32, mask=False)
    assert "tile_dot" in kernels(module, Context(TILES))
    assert "tile_dot" not in kernels(module, Context(LANES))
    assert "tile_dot" not in kernels(attention((1, 1, 2, 32), 32, 32, mask=False), Context(TILES))
