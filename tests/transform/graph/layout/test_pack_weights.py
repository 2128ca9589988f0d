"""PackWeights: products by constants become products by panels, the same numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.llvm.levels import LEVELS
from tests.transform.cases import floats
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.graph import Call, Constant, Op
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.ir.well_formed.verify import verify
from unity.op.contraction.matmul_packed import matrix, panels
from unity.script import parse
from unity.transform.graph import FoldConstants, PackWeights
from unity.transform.passes import Context

CONTEXT = Context(replace(Context().target, vector_bits=256))
"""Eight lanes, two vectors a tile: panels of 16 columns."""


def program(expression: str, x: str, **constants: Array) -> IRModule:
    text = f"""
n = dim("n")
@script.function
def main(x: f32[Tensor, {x}]) -> f32[Tensor, ...]:
    with R.dataflow():
        y = {expression}
    return y
"""
    return parse(text, constants)


def packed(module: IRModule) -> IRModule:
    got = PackWeights()(FoldConstants()(module, CONTEXT), CONTEXT)
    verify(got)
    return got


def calls(module: IRModule) -> list[Call]:
    values = [b.value for b in walk_bindings(module.graph_functions()["main"])]
    return [v for v in values if isinstance(v, Call) and isinstance(v.callee, Op)]


def weights(module: IRModule) -> list[Constant]:
    found = [c.args[1] for c in calls(module) if c.callee == Op("matmul_packed")]
    return [w for w in found if isinstance(w, Constant)]


@pytest.mark.parametrize(
    ("expression", "x", "shape", "given"),
    [
        ("R.matmul(x, R.const('w'))", "4, 6", (6, 40), (4, 6)),
        ("R.matmul(x, R.const('w'))", "6", (6, 16), (6,)),
        ("R.matmul(x, R.const('w'))", "n, 3, 5", (5, 9), (2, 3, 5)),
        ("R.matmul(x, R.permute_dims(R.const('w')))", "n, 6", (20, 6), (3, 6)),
        ("R.matmul(x, R.const('w'))", "2, n, 6", (2, 6, 17), (2, 3, 6)),
        ("R.matmul(x, R.const('w'))", "2, n, 6", (1, 6, 17), (2, 3, 6)),
        ("R.matmul(x, R.const('w'))", "3, 1, n, 6", (2, 6, 8), (3, 1, 2, 6)),
    ],
)
def test_a_product_by_a_constant_is_packed(
    expression: str, x: str, shape: tuple[int, ...], given: tuple[int, ...]
) -> None:
    value, weight = floats(0, given, shape)
    before = program(expression, x, w=weight)
    after = packed(before)
    assert [c.callee for c in calls(after)] == [Op("matmul_packed")]
    expected, got = (interpret(m, "main", [value]) for m in (before, after))
    assert isinstance(expected, np.ndarray)
    assert isinstance(got, np.ndarray)
    assert got.shape == expected.shape
    np.testing.assert_allclose(
        got.astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-5
    )


def test_panels_are_as_wide_as_the_columns_need() -> None:
    for columns, shape in ((9, (1, 6, 16)), (8, (1, 6, 8)), (40, (3, 6, 16))):
        (weight,) = floats(0, (6, columns))
        (found,) = weights(packed(program("R.matmul(x, R.const('w'))", "n, 6", w=weight)))
        assert found.data.shape == shape
        np.testing.assert_array_equal(matrix(found.data, columns), weight)


def test_a_constant_used_twice_is_packed_once() -> None:
    (weight,) = floats(0, (8, 8))
    after = packed(
        parse(
            """
@script.function
def main(x: f32[Tensor, 2, 8]) -> f32[Tensor, 2, 8]:
    return R.matmul(R.matmul(x, R.const("w")), R.const("w"))
""",
            {"w": weight},
        )
    )
    first, second = weights(after)
    assert first is second


@pytest.mark.parametrize(
    ("expression", "x", "shape"),
    [
        ("R.matmul(x, R.const('w'))", "4, 6", (6,)),
        ("R.matmul(x, R.const('w'))", "4, 6", (6, 3)),  # most of a register would be padding
        ("R.matmul(x, R.const('w'))", "4, 2", (2, 32)),  # no more than a broadcast
        ("R.matmul(x, R.const('w'))", "6", (2, 6, 16)),
        ("R.matmul(R.const('w'), x)", "16, 16", (4, 16)),
    ],
)
def test_what_panels_would_not_help_stays(expression: str, x: str, shape: tuple[int, ...]) -> None:
    (weight,) = floats(0, shape)
    before = program(expression, x, w=weight)
    assert packed(before) is before


def test_panels_and_back() -> None:
    for shape, width in (((3, 8), 4), ((2, 5, 7), 4), ((4, 0), 2), ((0, 3), 2), ((3, 1), 16)):
        (weight,) = floats(1, shape)
        np.testing.assert_array_equal(matrix(panels(weight, width), shape[-1]), weight)


TILES = Context(
    replace(
        Context().target,
        triple="x86_64-unknown-linux-gnu",
        features=("amx-bf16", "amx-tile", "avx512bf16"),
        vector_bits=512,
    )
)


@pytest.mark.parametrize(
    ("shape", "context", "op"),
    [
        ((40, 48), TILES, "matmul_interleaved"),
        ((7, 9), TILES, "matmul_interleaved"),
        ((1, 6, 17), TILES, "matmul_interleaved"),
        ((2, 6, 17), TILES, "matmul_packed"),
        ((40, 48), CONTEXT, "matmul_packed"),
    ],
)
def test_narrow_matrices_lie_as_the_target_multiplies_them(
    shape: tuple[int, ...], context: Context, op: str
) -> None:
    text = f"""
@script.function
def main(x: bf16[Tensor, 2, 3, {shape[-2]}]) -> f32[Tensor, ...]:
    y = R.matmul(x, R.const("w"), out_dtype="float32")
    return y
"""
    value, weight = (a.astype("bfloat16") for a in floats(0, (2, 3, shape[-2]), shape))
    before = parse(text, {"w": weight})
    after = PackWeights()(FoldConstants()(before, context), context)
    verify(after)
    assert [c.callee for c in calls(after)] == [Op(op)]
    expected, got = (interpret(m, "main", [value]) for m in (before, after))
    assert isinstance(expected, np.ndarray)
    assert isinstance(got, np.ndarray)
    np.testing.assert_allclose(
        got.astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(("depth", "filled"), [(6, False), (7, True)])
def test_rows_of_integers_are_filled_up_to_whole_groups(depth: int, filled: bool) -> None:
    text = f"""
@script.function
def main(x: i16[Tensor, 2, 3, {depth}]) -> i32[Tensor, 2, 3, 16]:
    y = R.matmul(x, R.const("w"), out_dtype="int32")
    return y
"""
    rng = np.random.default_rng(1)
    value, weight = (
        rng.integers(-255, 256, s).astype(np.int16) for s in ((2, 3, depth), (depth, 16))
    )
    before, context = parse(text, {"w": weight}), Context(target=LEVELS["avx2"])
    after = PackWeights()(before, context)
    verify(after)
    pad = [Op("nn.pad")] if filled else []
    assert [c.callee for c in calls(after)] == [*pad, Op("matmul_interleaved")]
    expected, got = (interpret(m, "main", [value]) for m in (before, after))
    np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))
