"""Products by quantized weights: integers where rows are few, reals where they are many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unity
from unity.codegen.llvm.host import host_target
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.graph import Call, Constant, Function, Op, VarBinding
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.machine.target import Target
from unity.script import parse
from unity.transform import Context
from unity.transform.graph import FoldQuantization, PackWeights

K, N = 72, 40
RNG = np.random.default_rng(4)
AVX2 = Context(
    Target("cpu", "x86_64-unknown-linux-gnu", "haswell", ("avx2", "fma"), 256, l2_bytes=1 << 10)
)
"""With a second cache that holds none of the matrices here."""
HOST = replace(host_target(1), l2_bytes=1 << 10)
SIGNED = RNG.integers(-128, 128, (K, N), dtype=np.int8)
BYTES = RNG.integers(0, 256, (K, N), dtype=np.uint8)
SCALES = RNG.uniform(0.01, 0.1, N).astype(np.float32)
MIDDLE = np.array(128, np.uint8)


def program(rows: str, weights: dict[str, Array], turned: bool = False, how: str = "") -> IRModule:
    source = """
m = dim("m")
@script.function
def main(x: f32[Tensor, ROWS]) -> f32[Tensor, OUT]:
    w = R.dequantize(R.const("w"), R.const("s"), R.const("z"), axis=AXIS)
    return R.add(R.matmul(x, WEIGHTHOW), R.const("b"))
"""
    weights = {"z": np.zeros((), np.int8), "s": SCALES, "b": SCALES * 3, **weights}
    if turned:
        weights["w"] = np.ascontiguousarray(weights["w"].T)
    batch = rows[: rows.rindex(",") + 1]
    values = {
        "ROWS": rows,
        "OUT": f"{batch} {N}",
        "AXIS": "0" if turned else "1",
        "WEIGHT": "R.permute_dims(w)" if turned else "w",
        "HOW": how,
    }
    for name, text in values.items():
        source = source.replace(name, text)
    return parse(source, weights)


def packed_weights(module: IRModule) -> list[Constant]:
    after = PackWeights()(FoldQuantization()(module, AVX2), AVX2)
    main = after["main"]
    assert isinstance(main, Function)
    return [
        b.value.args[1]
        for b in walk_bindings(main)
        if isinstance(b, VarBinding)
        and isinstance(b.value, Call)
        and b.value.callee == Op("matmul_packed")
        and isinstance(b.value.args[1], Constant)
    ]


FORMS: dict[str, tuple[str, dict[str, Array], bool]] = {
    "one row": (f"1, {K}", {"w": SIGNED}, False),
    "an unknown number of rows": (f"m, {K}", {"w": SIGNED}, False),
    "bytes around their middle": (f"2, {K}", {"w": BYTES, "z": MIDDLE}, False),
    "axes exchanged": (f"1, {K}", {"w": SIGNED}, True),
    "one scale": (f"1, {K}", {"w": SIGNED, "s": np.asarray(SCALES[0])}, False),
    "a batch": (f"m, 1, {K}", {"w": SIGNED}, False),
}


@pytest.mark.rotated(1 / 4)
@pytest.mark.parametrize("form", FORMS)
def test_few_rows_read_integers(form: str) -> None:
    rows, weights, turned = FORMS[form]
    module = program(rows, weights, turned)
    (weight,) = packed_weights(module)
    assert weight.data.dtype == np.int8
    shape = tuple(3 if d == "m" else int(d) for d in rows.split(", "))
    x = RNG.standard_normal(shape).astype(np.float32)
    expected = np.asarray(interpret(module, "main", [x]))
    got = np.asarray(unity.compile(module, HOST, cache=None)(x))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4 * float(np.abs(expected).max()))


KEPT_WIDE: dict[str, tuple[str, dict[str, Array]]] = {
    "many rows": (f"512, {K}", {"w": SIGNED}),
    "bytes that 8 bits don't hold without their zero point": (
        f"1, {K}",
        {"w": BYTES, "z": np.array(7, np.uint8)},
    ),
}


@pytest.mark.parametrize("form", KEPT_WIDE)
def test_others_read_reals(form: str) -> None:
    rows, weights = KEPT_WIDE[form]
    (weight,) = packed_weights(program(rows, weights))
    assert weight.data.dtype == np.float32


def test_scales_of_rows_are_no_epilogue() -> None:
    scales = RNG.uniform(0.01, 0.1, K).astype(np.float32)
    module = parse(
        f"""
@script.function
def main(x: f32[Tensor, 1, {K}]) -> f32[Tensor, 1, {N}]:
    w = R.dequantize(R.const("w"), R.const("s"), 0, axis=0)
    return R.matmul(x, w)
""",
        {"w": SIGNED, "s": scales},
    )
    (weight,) = packed_weights(module)
    assert weight.data.dtype == np.float32


def test_a_matrix_that_others_read_is_dequantized() -> None:
    module = parse(
        f"""
@script.function
def main(x: f32[Tensor, 1, {K}]) -> f32[Tensor, {K + 1}, {N}]:
    w = R.dequantize(R.const("w"), 0.5, 0)
    return R.concat((R.matmul(x, w), w), axis=0)
""",
        {"w": SIGNED},
    )
    (weight,) = packed_weights(module)
    assert weight.data.dtype == np.float32
