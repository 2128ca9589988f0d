"""Tutorial 1: a module with a graph function and a kernel, from source to machine code.

Run it: ``python tutorials/01_first_module.py``.
"""

from __future__ import annotations

import numpy as np

import unity
from unity import script
from unity.script import Buffer, R, T, Tensor, dim, f32

# %% A symbol stands for a size that is only known when the program runs.
n = dim("n")


# %% A prim func is a kernel: loops, blocks and buffers. The block says what is computed for each
# (vi, vj), with vk reduced; the loops around it say in which order, and a schedule may change that.
@script.prim_func
def matmul(a: f32[Buffer, n, 128], b: f32[Buffer, 128, 64], c: f32[Buffer, n, 64]) -> None:
    for i, j, k in T.grid(n, 64, 128):
        with T.block("matmul"):
            vi, vj, vk = T.axis.remap("SSR", i, j, k)
            with T.init():
                c[vi, vj] = 0.0
            c[vi, vj] += a[vi, vk] * b[vk, vj]


# %% A graph function works on whole tensors: it calls the kernel, and operators from `R`.
@script.function
def main(x: f32[Tensor, n, 128], w: f32[Tensor, 128, 64]) -> f32[Tensor, n, 64]:
    y = R.call_tir(matmul, (x, w), out=f32[Tensor, n, 64])
    return R.nn.relu(y)


# %% Both are in one module, which prints as the language it was written in.
module = script.module(main)
module.show()

# %% Printing loses nothing: the text parses back to the same module.
assert unity.structural_equal(script.parse(script.print_module(module)), module)

# %% Compile it. One executable serves every n.
executable = unity.compile(module)
rng = np.random.default_rng(0)
w = rng.standard_normal((128, 64), np.float32)
for rows in (1, 5, 300):
    x = rng.standard_normal((rows, 128), np.float32)
    np.testing.assert_allclose(executable(x, w), np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)
print("right for 1, 5 and 300 rows")

# %% A decorated function may also be called with arrays at once: it compiles on first use.
np.testing.assert_allclose(np.asarray(main(x, w)), executable(x, w))

# %% Shapes are checked against the symbols, and the message says what is wrong.
try:
    executable(x[:, :100], w)
except unity.UnityError as error:
    print(error)

# %% Look inside: the program after the pipeline (kernels fused, scheduled and lowered) ...
print(executable.ir())

# %% ... and what LLVM made of it.
print("\n".join(executable.asm().splitlines()[:20]))

# %% The interpreter is the reference: slow, plain, and always there to compare with.
small = rng.standard_normal((2, 128), np.float32)
from unity.interpreter import interpret  # noqa: E402

expected = np.asarray(interpret(module, "main", [small, w]))
np.testing.assert_allclose(executable(small, w), expected, rtol=1e-4, atol=1e-4)
print("the interpreter agrees")
