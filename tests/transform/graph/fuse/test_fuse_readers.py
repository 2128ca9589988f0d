"""FuseReaders: a product and all that is made of its chunks of columns in one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unity
from tests.rotation import examples
from tests.transform.cases import floats
from unity.codegen.llvm.host import host_target
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.graph import CallTir
from unity.ir.module import IRModule
from unity.ir.stmt import Allocate
from unity.ir.visit import walk_bindings, walk_stmt
from unity.ir.well_formed.verify import verify
from unity.machine.target import Target
from unity.op.check import check_types
from unity.script import parse
from unity.transform import Context, Pass, Pipeline
from unity.transform.graph import (
    EliminateDeadCode,
    FuseOps,
    FuseReaders,
    FuseTir,
    LegalizeOps,
    PackWeights,
)
from unity.transform.instruments import Verify
from unity.transform.schedule import ScheduleDefault

WIDE = replace(Context().target, vector_bits=512, vector_registers=32)
SHORT = replace(WIDE, vector_bits=256, vector_registers=16)
SHORTEST = replace(WIDE, vector_bits=128, vector_registers=16)
STEPS: list[Pass] = [
    PackWeights(),
    LegalizeOps(),
    FuseOps(),
    FuseTir(),
    FuseReaders(),
    EliminateDeadCode(),
]


def gates(count: int, units: int) -> list[str]:
    """``g0``, ``g1``, ... of ``y``."""
    return [
        f"g{i} = R.strided_slice(y, axes=(1,), begin=({i * units},), end=({(i + 1) * units},))"
        for i in range(count)
    ]


def program(lines: Sequence[str], units: int, chunks: int, results: str, rows: str) -> str:
    tensor = f"f32[Tensor, {rows}, {units}]"
    count = results.count(",") + 1
    body = "".join(f"        {line}\n" for line in lines)
    return f"""
n = dim("n")
@script.function
def main(
    x: f32[Tensor, {rows}, 5], early: f32[Tensor, {rows}, {units * chunks}], c: {tensor},
    mask: boolean[Tensor, {rows}, 1]
) -> R.Tuple({", ".join([tensor] * count)}):
    with R.dataflow():
{body}        both = ({results},)
    return both
"""


def checked(module: IRModule, target: Target, args: Sequence[Array]) -> IRModule:
    """The scheduled kernels, which compute the same numbers."""
    context = Context(target, instruments=(Verify(),))
    result = Pipeline((*STEPS, ScheduleDefault())).run(module, context)
    verify(result)
    check_types(result)
    assert_same(module, result, args)
    return result


def assert_same(before: IRModule, after: IRModule, args: Sequence[Array]) -> None:
    expected, got = (interpret(m, "main", args) for m in (before, after))
    assert isinstance(expected, tuple)
    assert isinstance(got, tuple)
    for a, b in zip(expected, got, strict=True):
        np.testing.assert_allclose(np.asarray(b, float), np.asarray(a, float), rtol=1e-4, atol=1e-5)


def calls(module: IRModule) -> list[CallTir]:
    main = module.graph_functions()["main"]
    return [b.value for b in walk_bindings(main) if isinstance(b.value, CallTir)]


def arguments(rows: int, units: int, chunks: int) -> list[Array]:
    x, early, c = floats(1, (rows, 5), (rows, units * chunks), (rows, units))
    return [x, early, c, np.arange(rows).reshape(rows, 1) % 3 > 0]


def weight(units: int, chunks: int) -> dict[str, Array]:
    return {"w": floats(2, (5, units * chunks))[0]}


CELL = [
    "after = R.add(R.multiply(R.sigmoid(g0), c), R.multiply(R.sigmoid(g1), R.tanh(g2)))",
    "out = R.multiply(R.sigmoid(g3), R.tanh(after))",
]
PRODUCT = ["p = R.matmul(x, R.const('w'))", "y = R.add(p, early)"]


@settings(max_examples=examples(5))
@given(
    rows=st.integers(0, 9),
    known=st.booleans(),
    units=st.integers(3, 40),
    masked=st.booleans(),
    target=st.sampled_from([WIDE, SHORT, SHORTEST]),
    threads=st.integers(1, 2),
)
def test_a_cell_is_one_kernel(
    rows: int, known: bool, units: int, masked: bool, target: Target, threads: int
) -> None:
    lines, results = [*PRODUCT, *gates(4, units), *CELL], "out, after"
    if masked:
        lines += ["h = R.where(mask, out, x0)", "k = R.where(mask, after, c)"]
        lines.insert(0, "x0 = R.multiply(c, 0.5)")
        results = "h, k"
    text = program(lines, units, 4, results, str(rows) if known else "n")
    module = parse(text, weight(units, 4))
    done = checked(module, replace(target, threads=threads), arguments(rows, units, 4))
    (call,) = calls(done)
    assert len(call.out) == 2
    kernel = done.prim_funcs()[call.callee.name]
    buffers = [s.buffer for s in walk_stmt(kernel.body) if isinstance(s, Allocate)]
    assert all(b.scope == "local" for b in buffers)  # accumulators: no gates in memory


@settings(max_examples=examples(3))
@given(
    rows=st.integers(1, 5),
    units=st.integers(8, 40),
    chunks=st.integers(2, 4),
    target=st.sampled_from([WIDE, SHORT, SHORTEST]),
)
def test_chunks_that_are_no_cell_lie_the_same(
    rows: int, units: int, chunks: int, target: Target
) -> None:
    """Something else needs the product too, so it stays; its kernel still reads such panels."""
    lines = [*PRODUCT, *gates(chunks, units)]
    lines += [f"s{i} = R.exp(g{i})" for i in range(chunks)]
    results = ", ".join(f"s{i}" for i in range(chunks))
    module = parse(program(lines, units, chunks, results, str(rows)), weight(units, chunks))
    arrays = arguments(rows, units, chunks)
    packed = PackWeights()(module, Context(target))
    found = [b.value for b in walk_bindings(packed.graph_functions()["main"])]
    assert any(getattr(v, "attrs", {}).get("chunks") == chunks for v in found)
    (call,) = calls(checked(module, target, arrays))
    assert len(call.out) == chunks
    alone = (PackWeights(), LegalizeOps(), FuseOps(), FuseTir(), ScheduleDefault())
    assert_same(module, Pipeline(alone).run(module, Context(target)), arrays)


def test_two_halves_of_a_gated_layer() -> None:
    lines = ["y = R.matmul(x, R.const('w'))", *gates(2, 24), "out = R.multiply(R.nn.silu(g0), g1)"]
    module = parse(program(lines, 24, 2, "out", "n"), weight(24, 2))
    (call,) = calls(checked(module, WIDE, arguments(7, 24, 2)))
    assert len(call.out) == 1


def test_readers_that_need_what_stands_between_stay() -> None:
    """The second reader needs a sum over the first one's rows."""
    lines = [*PRODUCT, *gates(2, 16), "a = R.sigmoid(g0)", "m = R.sum(a, axis=1, keepdims=True)"]
    lines += ["b = R.multiply(R.tanh(g1), m)"]
    module = parse(program(lines, 16, 2, "a, b", "3"), weight(16, 2))
    found = calls(checked(module, WIDE, arguments(3, 16, 2)))
    assert len(found) == 4
    assert all(len(call.out) == 1 for call in found)


@pytest.mark.parametrize(
    ("extra", "results"),
    [
        (["z = R.matmul(R.permute_dims(y), c)", "t = R.sum(z)", "a = R.add(s0, t)"], "a, s1"),
        (["m = R.max(g0, axis=1, keepdims=True)", "a = R.subtract(s0, m)"], "a, s1"),
    ],
    ids=["the product is needed as a whole", "a chunk is reduced"],
)
def test_what_is_read_another_way_is_in_no_chunks(extra: list[str], results: str) -> None:
    lines = [*PRODUCT, *gates(2, 16), "s0 = R.sigmoid(g0)", "s1 = R.tanh(g1)", *extra]
    module = parse(program(lines, 16, 2, results, "3"), weight(16, 2))
    packed = PackWeights()(module, Context(WIDE))
    found = [b.value for b in walk_bindings(packed.graph_functions()["main"])]
    assert not any(getattr(v, "attrs", {}).get("chunks", 1) > 1 for v in found)
    assert len(calls(checked(module, WIDE, arguments(3, 16, 2)))) > 1


@pytest.mark.rotated(3)
@pytest.mark.parametrize(
    "lines",
    [
        ["l = R.multiply(R.exp(a), b)", "r = R.add(R.tanh(b), a)"],
        [  # rotary embedding: both products turned by an angle
            "l = R.subtract(R.multiply(a, c), R.multiply(b, s))",
            "r = R.add(R.multiply(a, s), R.multiply(b, c))",
        ],
    ],
    ids=["crossed", "rotary"],
)
@pytest.mark.parametrize("rows", ["n", "16"])
def test_what_reads_two_products_is_joined_to_one_of_them(lines: list[str], rows: str) -> None:
    products = ["a = R.matmul(x, R.const('w'))", "b = R.matmul(x, R.const('v'))"]
    products += ["s = R.sin(c)"]
    module = parse(
        program([*products, *lines], 16, 1, "l, r", rows),
        {**weight(16, 1), "v": floats(3, (5, 16))[0]},
    )
    found = calls(checked(module, WIDE, arguments(16, 16, 1)))
    assert sorted(len(call.out) for call in found)[-1] == 2


@pytest.mark.rotated(3)
@pytest.mark.parametrize("units", [7, 64])
@pytest.mark.parametrize("rows", [1, 3, 8])
def test_compiled(rows: int, units: int) -> None:
    host = host_target()
    narrow = ("avx", "avx2", "fma", "sse4.1", "sse4.2", "ssse3")
    targets = [replace(host, threads=2), Target("cpu", host.triple, "haswell", narrow, 256, 16)]
    text = program([*PRODUCT, *gates(4, units), *CELL], units, 4, "out, after", "n")
    module, arrays = parse(text, weight(units, 4)), arguments(rows, units, 4)
    expected = interpret(module, "main", arrays)
    assert isinstance(expected, tuple)
    for target in targets:
        got = unity.compile(module, target=target, cache=None)(*arrays)
        assert isinstance(got, tuple)
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_allclose(np.asarray(b, float), np.asarray(a, float), atol=1e-5)
