"""Tutorial 3: write a kernel, schedule it by hand, and see what becomes of it.

Run it: ``python tutorials/03_schedule_a_kernel.py``. A matrix product is told as three loops; what
makes it fast (tiles in registers, vectors, threads) is added by steps, checked and recorded.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

import unity
from unity import script
from unity.errors import UnityError
from unity.script import Buffer, R, T, Tensor, dim, f32
from unity.transform.schedule import (
    Schedule,
    TensorIntrinsic,
    Trace,
    register_intrinsic,
)

n = dim("n")


# %% A kernel says what is computed, and nothing of how.
@script.prim_func
def product(a: f32[Buffer, 384, 512], b: f32[Buffer, 512, 768], c: f32[Buffer, 384, 768]) -> None:
    for i, j, k in T.grid(384, 768, 512):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            with T.init():
                c[vi, vj] = 0.0
            c[vi, vj] += a[vi, vk] * b[vk, vj]


@script.function
def main(x: f32[Tensor, 384, 512], w: f32[Tensor, 512, 768]) -> f32[Tensor, 384, 768]:
    return R.call_tir(product, (x, w), out=f32[Tensor, 384, 768])


module = script.module(main)
rng = np.random.default_rng(0)
x = rng.standard_normal((384, 512), np.float32)
w = rng.standard_normal((512, 768), np.float32)


# %% A schedule takes it apart. Each step is refused if it could change what is computed.
def tiled(schedule: Schedule, rows: int = 6, vectors: int = 4, lanes: int = 16) -> None:
    """Tiles of some rows by some vectors in registers, strips of columns on threads."""
    copy = schedule.cache_write("product", "c", "local")  # sums are kept apart, and copied out
    panel = schedule.cache_read("product", "b", "local")  # columns are packed
    i, j, k = schedule.get_loops("product")
    tile, row = schedule.split(i, [None, rows])
    strip, vector, lane = schedule.split(j, [None, vectors, lanes])
    steps, step = schedule.split(k, [None, 4])
    schedule.reorder(strip, tile, steps, step, row, vector, lane)
    schedule.reverse_compute_at(copy, tile)  # each tile is copied out when it is complete
    schedule.compute_at(panel, strip)  # each strip of columns is packed when it is begun
    schedule.parallel(strip)
    zeros = schedule.decompose_reduction("product", steps)  # before the sum, not in it
    inner = [schedule.split(schedule.get_loops(x)[-1], [None, lanes])[1] for x in (copy, panel)]
    for loop in (lane, schedule.get_loops(zeros)[-1], *inner):
        schedule.vectorize(loop)
    for loop in (step, row, vector):
        schedule.unroll(loop)


by_hand = Schedule(module.prim_funcs()["product"])
tiled(by_hand)
print(by_hand.func)

# %% Lowering keeps what was meant: 6 x 64 sums are 24 registers.
ours = unity.compile(module.with_({"product": by_hand.kernel()}))
default = unity.compile(module)
np.testing.assert_allclose(ours(x, w), x @ w, rtol=1e-3, atol=1e-3)
print("\n".join(str(ours.ir("product")).splitlines()[:16]))


def milliseconds(executable: unity.Executable) -> float:
    """The least of some calls."""
    times: list[float] = []
    for _ in range(20):
        start = perf_counter()
        executable(x, w)
        times.append(perf_counter() - start)
    return min(times) * 1e3


print(f"by hand {milliseconds(ours):.2f} ms, by rule {milliseconds(default):.2f} ms")

# %% What the rules did is a program, too: one to start from, which runs as it is printed.
# `unity inspect model.onnx --schedule KERNEL` prints it for a model.
rule = default.schedule("product")
print(rule.to_python("product"))
by_rule = unity.compile(module.with_({"product": rule.kernel()}))
np.testing.assert_allclose(by_rule(x, w), x @ w, rtol=1e-3, atol=1e-3)
print(f"by the rule's steps {milliseconds(by_rule):.2f} ms")

# %% Its numbers are decisions. A network of five kernels that rules lay out in different ways:
network = script.parse(
    """
@script.function
def main(image: f32[Tensor, 1, 64, 28, 28], x: f32[Tensor, 40, 96], q: f32[Tensor, 1, 48, 2, 32]):
    halved = R.nn.conv2d(image, R.const("taps"), strides=2, padding=1)
    same = R.nn.conv2d(halved, R.const("taps"), padding=1)
    return (same, R.matmul(x, R.const("w")), R.nn.softmax(x), R.nn.attention(q, q, q))
""",
    {"taps": rng.standard_normal((64, 64, 3, 3), np.float32) / 24, "w": w[:96, :100]},
)
image, q = (rng.standard_normal(n, np.float32) for n in ((1, 64, 28, 28), (1, 48, 2, 32)))

# %% One decision of each is changed, by a block that the rule takes: the code is another, the
# numbers stay.
decisions = {
    "matmul": {"rows": 2},  # a product of packed columns: rows of a tile in registers
    "pad": {"rows": 2},  # a convolution by blocks of channels, which begins with its padding
    "products": {"tiles": 4},  # a convolution by Winograd's tiles: tiles at a time
    "softmax": {"vectors": 1},  # registers of a row that one step takes
    "attention": {"rows": 32},  # rows whose scores are kept at a time
}
usual = unity.compile(network)
changed = unity.compile(network, decisions=decisions)
others = [k for k in usual.kernels if usual.llvm(k) != changed.llvm(k)]
assert len(others) == len(decisions)
for was, now in zip(usual(image, x[:40, :96], q), changed(image, x[:40, :96], q), strict=True):
    np.testing.assert_allclose(now, was, rtol=1e-3, atol=1e-3)
for kernel in others:
    print(kernel, *usual.rules(kernel), "->", *changed.rules(kernel), sep="\n    ")

# %% What else a decision may be, and why, is told beside it.
(softmax,) = usual.rules("softmax")
for name, legal in softmax.legal.items():
    print(f"{name}={softmax.decisions[name]} may be {legal}")

# %% For one kernel it is a call, and what can't be is refused with the reason.
one = usual.schedule("softmax", {"softmax": {"vectors": 1}})
print(one.trace.to_python())
try:
    usual.schedule("softmax", {"softmax": {"vectors": 99}})
except UnityError as error:
    print(error)

# %% The steps are data: they can be stored, and done again, on other shapes as well.
text = by_hand.trace.to_json()


@script.prim_func
def any_rows(a: f32[Buffer, n, 512], b: f32[Buffer, 512, 768], c: f32[Buffer, n, 768]) -> None:
    for i, j, k in T.grid(n, 768, 512):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            with T.init():
                c[vi, vj] = 0.0
            c[vi, vj] += a[vi, vk] * b[vk, vj]


@script.function
def any_main(x: f32[Tensor, n, 512], w: f32[Tensor, 512, 768]) -> f32[Tensor, n, 768]:
    return R.call_tir(any_rows, (x, w), out=f32[Tensor, n, 768])


dynamic = script.module(any_main)
again = Schedule(dynamic.prim_funcs()["any_rows"]).replay(Trace.from_json(text))
executable = unity.compile(dynamic.with_({"any_rows": again.kernel()}))
for rows in (1, 6, 100):
    np.testing.assert_allclose(executable(x[:rows], w), x[:rows] @ w, rtol=1e-3, atol=1e-3)

# %% Where a size is known after all, it becomes a number: tiles that fit need no conditions then.
again.specialize({"n": 96})
assert "T.where(i" not in str(again.func)
print(again.trace.to_python())

# %% What is wrong is refused, and says why.
refused = Schedule(module.prim_funcs()["product"])
try:
    refused.vectorize(refused.get_loops("product")[2])
except UnityError as error:
    print(error)


# %% What a machine does in one instruction can be named: `tensorize` puts it where it is described.
@script.prim_func
def scaled_row(a: f32[Buffer, 1], b: f32[Buffer, 16], c: f32[Buffer, 16]) -> None:
    for j in range(16):
        with T.block("row"):
            vj = T.axis.spatial(16, j)
            c[vj] = c[vj] + a[0] * b[vj]


@script.prim_func
def one_instruction(a: f32[Buffer, 1], b: f32[Buffer, 16], c: f32[Buffer, 16]) -> None:
    for lane in T.vectorized(16):
        c[lane] = c[lane] + a[0] * b[lane]


described = scaled_row.module().prim_funcs()["scaled_row"]
made = one_instruction.module().prim_funcs()["one_instruction"]
register_intrinsic("scaled_row", TensorIntrinsic(described, made))
other = Schedule(module.prim_funcs()["product"])
i, j, k = other.get_loops("product")
j_tile, j_lane = other.split(j, [None, 16])
other.reorder(i, j_tile, k, j_lane)
other.parallel(i)
other.decompose_reduction("product", k)
other.tensorize(j_lane, "scaled_row")
tensorized = unity.compile(module.with_({"product": other.kernel()}))
np.testing.assert_allclose(tensorized(x, w), x @ w, rtol=1e-3, atol=1e-3)
