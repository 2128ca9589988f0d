"""A padded copy made chunk by chunk: what it computes, and when whole copies are made instead."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unity
from tests.transform.cases import floats
from tests.transform.rules.kernels import unscheduled
from unity.interpreter import run_prim_func
from unity.ir.prim_expr import Imm, imm
from unity.ir.stmt import Allocate, Buffer, For, PrimFunc
from unity.ir.visit import walk_stmt
from unity.op.table import OPS
from unity.script import parse
from unity.transform.passes import Context
from unity.transform.rules.default import schedule

TARGET = replace(Context().target, vector_bits=256, threads=2)


def windows(channels: int, size: int, stride: int, step: str, init: str, weight: str) -> PrimFunc:
    """Windows of 3 x 3 over images padded by one, two of them, channels as `weight` reads them."""
    padded, out = size + 2, (size - 1) // stride + 1
    return parse(f"""
@script.prim_func
def main(
    x: f32[Buffer, 2, {channels}, {size}, {size}],
    w: f32[Buffer, {channels}, 3, 3],
    y: f32[Buffer, 2, {channels}, {out}, {out}],
) -> None:
    pad = T.alloc((2, {channels}, {padded}, {padded}), "float32")
    for b, c, i, j in T.grid(2, {channels}, {padded}, {padded}):
        with T.block("pad"):
            vb, vc, vi, vj = T.axis.remap("SSSS", b, c, i, j)
            pad[vb, vc, vi, vj] = T.select(
                1 <= vi and vi < {size + 1} and 1 <= vj and vj < {size + 1},
                x[vb, vc, vi - 1, vj - 1],
                {init},
            )
    for b, c, i, j, p, q in T.grid(2, {channels}, {out}, {out}, 3, 3):
        with T.block("window"):
            vb, vc, vi, vj, vp, vq = T.axis.remap("SSSSRR", b, c, i, j, p, q)
            with T.init():
                y[vb, vc, vi, vj] = {init}
            y[vb, vc, vi, vj] = {
        step.format(
            y="y[vb, vc, vi, vj]",
            x=f"pad[vb, vc, vi * {stride} + vp, vj * {stride} + vq]",
            w=weight,
        )
    }
""").prim_funcs()["main"]


SUM, MOST = "{y} + {x} * {w}", "T.max({y}, {x})"
OWN = "w[vc, vp, vq]"


@pytest.mark.parametrize(("size", "stride"), [(7, 1), (16, 2), (9, 2)])
@pytest.mark.parametrize(("step", "init"), [(SUM, "0.0"), (MOST, "-3.0")], ids=["sum", "maximum"])
def test_cache_chunks(size: int, stride: int, step: str, init: str) -> None:
    func = windows(2, size, stride, step, init, OWN)
    after = schedule(func, TARGET)
    (temporary,) = copies(after)
    assert temporary.buffer.shape == (imm(size + 2), imm(size + 2))
    assert_same(func, after, size)
    assert not any(isinstance(s, For) and s.kind == "parallel" for s in walk_stmt(temporary.body))


def test_chunks_of_all_channels_where_weights_are_shared() -> None:
    func = windows(6, 7, 1, SUM, "0.0", "w[vi % 3, vp, vq]")
    after = schedule(func, TARGET)
    (temporary,) = copies(after)
    assert temporary.buffer.shape == (imm(6), imm(9), imm(9))
    assert_same(func, after, 7)


def assert_same(func: PrimFunc, after: PrimFunc, size: int) -> None:
    weight = func.params[1]
    assert isinstance(weight, Buffer)
    assert isinstance(weight.shape[0], Imm)
    channels = int(weight.shape[0].value)
    x, w = floats(size, (2, channels, size, size), (channels, 3, 3))
    (want,), (got,) = (np.asarray(run_prim_func(f, [x, w], {})) for f in (func, after))
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_a_chunk_that_is_too_large_is_copied_whole() -> None:
    (temporary,) = copies(schedule(windows(6, 200, 1, SUM, "0.0", OWN), TARGET))
    assert len(temporary.buffer.shape) == 4


def test_too_few_chunks_for_the_threads_are_copied_whole() -> None:
    func = windows(1, 16, 1, SUM, "0.0", OWN)
    (temporary,) = copies(schedule(func, replace(TARGET, threads=4)))
    assert len(temporary.buffer.shape) == 4


def test_weights_that_all_chunks_would_pack_are_not_packed_for_each() -> None:
    text = "w[vi % 3, vp, vq] * w[vj % 3, vp, vq]"
    large = windows(300, 5, 1, SUM, "0.0", text)
    (temporary,) = copies(schedule(large, TARGET))
    assert len(temporary.buffer.shape) == 4


def copies(func: PrimFunc) -> list[Allocate]:
    """Where the kernel allocates its padded images."""
    found = [s for s in walk_stmt(func.body) if isinstance(s, Allocate)]
    return [s for s in found if s.buffer.name == "pad"]


@pytest.mark.rotated(1)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("shape", ["2, 4, 9, n", "1, 4, n, 7", "1, 4, h, n"])
def test_chunks_of_unknown_size(shape: str, stride: int, threads: int) -> None:
    """What passes between the stages lies in memory of a run of chunks."""
    channels = int(shape.split(", ")[1])
    exe = unity.compile(
        parse(f"""
n = dim("n")
h = dim("h")

@script.function
def main(x: f32[Tensor, {shape}], w: f32[Tensor, {channels}, 1, 3, 3]) -> Tensor:
    return R.nn.conv2d(x, w, strides={stride}, padding=1, groups={channels})
"""),
        threads=threads,
    )
    assert any(r.rule == "cache_chunks" for name in exe.kernels for r in exe.rules(name))
    reference = OPS["nn.conv2d"].reference
    assert reference is not None
    for n in (1, 2, 16, 35):
        sizes = [{"n": n, "h": 6}.get(s) or int(s) for s in shape.split(", ")]
        x, w = floats(n, tuple(sizes), (channels, 1, 3, 3))
        attrs = {"strides": stride, "padding": 1, "groups": channels}
        full = unscheduled("nn.conv2d", (x.shape, w.shape), attrs)[1]
        want = np.asarray(reference([x, w], full))
        np.testing.assert_allclose(exe(x, w), want, rtol=1e-5, atol=1e-5)


def test_a_stage_that_reads_nothing_of_the_one_before_makes_no_chunks() -> None:
    func = parse("""
@script.prim_func
def main(x: i64[Buffer, 4, 5], y: f32[Buffer, 5]) -> None:
    unread = T.alloc((5, 5), "int64")
    for i, j in T.grid(5, 5):
        with T.block("unread"):
            vi, vj = T.axis.remap("SS", i, j)
            unread[vi, vj] = vj | T.max(vi, 6)
    for i in range(5):
        with T.block("row"):
            vi = T.axis.remap("S", i)
            y[vi] = T.cast("float32", x[1, (vi + 3) % 5])
""").prim_funcs()["main"]
    x, y = np.arange(20).reshape(4, 5), np.zeros(5, np.float32)
    run_prim_func(schedule(func, replace(TARGET, threads=1)), [x, y])
    np.testing.assert_array_equal(y, np.roll(x[1], -3))
