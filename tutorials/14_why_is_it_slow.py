"""Tutorial 14: why is my kernel slow? Find it, look at it, and make it fast.

Run it: ``python tutorials/14_why_is_it_slow.py``. A kernel written by hand sums the columns of a
matrix, and takes most of a program's time. Lines that begin with ``# ->`` are what it prints; times
differ from machine to machine and are not among them.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np

import unity
from unity import script
from unity.script import Buffer, R, T, Tensor, f32
from unity.transform.schedule import Schedule

SIZE = 1024


# %% The program: a kernel, whose loops were laid out by hand (``scheduled``), between operators.
@script.prim_func(attrs={"scheduled": True})
def columns(x: f32[Buffer, SIZE, SIZE], y: f32[Buffer, SIZE]) -> None:
    for j, i in T.grid(SIZE, SIZE):
        with T.block("columns"):
            vj, vi = T.axis.remap("SR", j, i)
            with T.init():
                y[vj] = 0.0
            y[vj] += x[vi, vj]


@script.function
def main(x: f32[Tensor, SIZE, SIZE]) -> f32[Tensor, SIZE]:
    y = R.call_tir(columns, (R.exp(x),), out=f32[Tensor, SIZE])
    return R.nn.softmax(y)


x = np.random.default_rng(0).standard_normal((SIZE, SIZE), np.float32)
slow = unity.compile(main, threads=1)

# %% 1. Where does the time go? A profile times each kernel's machine code, the slowest first.
profile = slow.profile(x)
print(profile)
print("the slowest:", profile.rows[0].what)
# -> the slowest: columns

# %% 2. What should it take? It reads 4 MB and adds a million numbers. Memory gives 10 GB each
# second on any machine of today, so that 0.4 ms would do: the arithmetic is nothing beside it.
seconds = profile.rows[0].seconds
print(f"{x.nbytes / seconds / 1e9:.2f} GB/s")

# %% 3. What does it do? The loops tell: the inner one walks down a column, so that each step reads
# 1024 numbers further on, in another cache line, of which it uses one number of sixteen. (`llvm`
# and `asm` print what becomes of them.)
print(slow.ir("columns"))
# -> y[j] += x[i * 1024 + j]

# %% 4. The way out that costs nothing: without ``scheduled`` the compiler lays the kernel out by a
# rule. `rules` says by which, and what it decided: rows of registers go down the matrix together.
plain = replace(columns.func, attrs=columns.func.attrs.without("scheduled"))
fast = unity.compile(main.module().with_({"columns": plain}), threads=1)
(kernel,) = [k for k in fast.kernels if "columns" in k]
for rule in fast.rules(kernel):
    print(rule)

# %% 5. The other one: the loops changed by hand, in steps that are checked. Columns become lanes,
# and the rows are walked outside of them, so that memory is read as it lies.
schedule = Schedule(plain)
j, i = schedule.get_loops("columns")
outer, lanes = schedule.split(j, [None, 64])
schedule.reorder(outer, i, lanes)
schedule.vectorize(lanes)
by_hand = unity.compile(main.module().with_({"columns": schedule.kernel()}), threads=1)
print(by_hand.ir("columns"))

# %% All three give the same numbers, which is looked at before times are. Runs are taken in turns,
# and the fastest counts: other programs only make them slower.
programs = {"written": slow, "by the rule": fast, "by hand": by_hand}
for program in programs.values():
    np.testing.assert_allclose(program(x), slow(x), rtol=1e-3)
times: dict[str, list[float]] = {name: [] for name in programs}
for _ in range(5):
    for name, program in programs.items():
        start = perf_counter()
        program(x)
        times[name].append(perf_counter() - start)
for name, taken in times.items():
    print(f"{name}: {min(taken) * 1e3:.2f} ms")
