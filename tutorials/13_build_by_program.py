"""Tutorial 13: programs built by programs, where the parts are known only when Python runs.

Run it: ``python tutorials/13_build_by_program.py``. A decorated function is written down as it is;
here a function makes one of a list of layers, with kernels, a branch and a loop. Lines that begin
with ``# ->`` are what it prints.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import unity
from unity import te
from unity.errors import UnityError
from unity.ir.graph import Var
from unity.script import Tensor, dim, f32

n = dim("n", min=1)

# %% A builder has parameters and gives variables; each call infers the type of what it makes.
b = unity.GraphBuilder()
x = b.param("x", f32[Tensor, n, 8])
y = b.op("nn.relu", x)
print(y.type)
# -> float32(n, 8)

# %% So a mistake is told by the line of Python that makes it, not when the whole is compiled.
try:
    b.op("matmul", y, y)
except UnityError as error:
    print(error)
# -> matmul: the inner dims of float32(n, 8) and float32(n, 8) differ: got n, expected 8


# %% What is no operator is a tensor expression: a formula for each element, of which a kernel is
# made. `emit_te` gives the function a `te.Tensor` for each variable, everything else as it is.
def leaky(a: te.Tensor, slope: float) -> te.Tensor:
    """Negative numbers times a slope."""
    return te.compute(a.shape, lambda i, j: te.max_(a[i, j], a[i, j] * slope), "leaky")


# %% Python's loops unroll while building: here they make a network of any depth.
def network(b: unity.GraphBuilder, x: Var, weights: Sequence[np.ndarray]) -> Var:
    """Products with activations in between."""
    for k, weight in enumerate(weights):
        x = b.op("matmul", x, weight)
        if k < len(weights) - 1:
            x = b.emit_te(leaky, x, 0.1)
    return x


rng = np.random.default_rng(0)
weights = [rng.standard_normal(s, np.float32) / 4 for s in ((8, 16), (16, 16), (16, 4))]
b = unity.GraphBuilder()
x = b.param("x", f32[Tensor, n, 8])
scores = network(b, x, weights)

# %% A branch and a loop of the program are built by functions, which run once while building:
# numbers are halved as often as it takes until they are small, if they are to be.
limit = b.param("limit", f32[Tensor, ()])


def halved() -> Var:
    """The scores, halved until none is larger than the limit."""
    (small,) = b.while_(
        [scores],
        lambda v: b.op("greater", b.op("max", b.op("abs", v)), limit),
        lambda v: b.op("multiply", v, 0.5),
    )
    return small


result = b.if_(b.op("greater", limit, 0.0), halved, lambda: scores)
module = b.finish(result)
print(list(module.prim_funcs()))
# -> ['leaky', 'leaky_2']

# %% The module is one like any other: it prints as a program, is compiled, saved, imported.
executable = unity.compile(module)
data = rng.standard_normal((5, 8), np.float32)
hidden: np.ndarray = data
for weight in weights[:-1]:
    hidden = hidden @ weight
    hidden = np.maximum(hidden, hidden * np.float32(0.1))
expected = hidden @ weights[-1]
np.testing.assert_allclose(executable(data, np.float32(0)), expected, rtol=1e-4, atol=1e-5)
small = executable(data, np.float32(0.5))
print(small.shape, bool(np.abs(small).max() <= 0.5))
# -> (5, 4) True
