"""Tutorial 5: bring your own engine, and your own C function.

Run it: ``python tutorials/05_bring_your_own_engine.py``. The engine is numpy where a vendor's would
call a runtime; the C function is the cube root of the C library of mathematics.
"""

from __future__ import annotations

import ctypes.util
import io
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import unity
import unity.runtime
from unity import script
from unity.codegen.engine import OpSite, register_engine
from unity.codegen.library import (
    LibraryFunction,
    SharedLibrary,
    fixed_kernel,
    register_library_function,
)
from unity.ir.graph import Call, Constant, Expr, Op, Tuple
from unity.script import Buffer, R, T, Tensor, dim, f32
from unity.transform.pattern import any_, op

Array = npt.NDArray[Any]
n = dim("n")


# %% What is to be compiled. One executable serves every n, whoever computes its parts.
@script.function
def main(x: f32[Tensor, n, 64], w: f32[Tensor, 64, 32]) -> f32[Tensor, n, 32]:
    y = R.add(R.matmul(R.exp(x), w), 1.0)
    return R.sin(R.nn.relu(y))


rng = np.random.default_rng(0)
w = rng.standard_normal((64, 32), np.float32) / 8


def check(executable: unity.Executable) -> None:
    """It computes what numpy computes, whatever the size."""
    for rows in (1, 5, 100):
        x = rng.standard_normal((rows, 64), np.float32)
        expected = np.sin(np.maximum(np.exp(x) @ w + 1, 0))
        np.testing.assert_allclose(executable(x, w), expected, rtol=1e-3, atol=1e-3)


# %% An engine compiles a part of the program to something that runs on arrays. Here that is a list
# of steps, each a numpy function and where among the values computed so far its operands are.
TAKES: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "matmul": np.matmul,
    "add": np.add,
    "nn.relu": lambda x: np.maximum(x, 0),
    "tuple": lambda *several: several,
}


@dataclass(frozen=True)
class Program:
    """Values are the constants, the inputs, what each step gives; the last is the result."""

    constants: list[Array]
    steps: list[tuple[str, list[int]]]

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Unity owns the memory of inputs and outputs: fill it, and keep nothing of it."""
        values: list[Any] = [*self.constants, *inputs]
        for name, operands in self.steps:
            values.append(TAKES[name](*(values[i] for i in operands)))
        results = values[-1] if isinstance(values[-1], tuple) else values[-1:]
        for output, result in zip(outputs, results, strict=True):
            np.copyto(output, result)

    def save(self) -> bytes:
        """All that `load` needs."""
        file = io.BytesIO()
        np.savez(file, np.array(json.dumps(self.steps)), *self.constants)
        return file.getvalue()


# %% The engine itself says what it takes, and walks over what it is given: a function of operators.
@dataclass(frozen=True)
class NumpyEngine:
    """Takes the ops that it has a numpy function for."""

    name: str = "numpy"

    def missing(self) -> str | None:
        return None  # or why it can't be used here: "pip install ..."

    def supports(self, site: OpSite) -> str | None:
        """Why a call can't be handed over; types and attributes may be looked at as well."""
        assert isinstance(site.call.callee, Op)
        if site.call.attrs.get("out_dtype") is not None:
            return "it gives the operands' type"
        return None if site.call.callee.name in TAKES else "it has no such op"

    def compile(self, subgraph: unity.IRModule, target: unity.Target, threads: int) -> Program:
        function = subgraph.graph_functions()["main"]
        bindings = [b for block in function.body.blocks for b in block.bindings]
        operands = [_operands(b.value) for b in bindings]
        constants = [a for _, args in operands for a in args if isinstance(a, Constant)]
        known: list[Expr] = [*constants, *function.params, *(b.var for b in bindings)]
        place = {id(value): i for i, value in enumerate(known)}
        steps = [(name, [place[id(a)] for a in args]) for name, args in operands]
        return Program([c.data for c in constants], steps)

    def load(self, data: bytes, target: unity.Target, threads: int) -> Program:
        found = np.load(io.BytesIO(data))
        steps, *constants = found.values()
        return Program(constants, [(name, args) for name, args in json.loads(str(steps))])


def _operands(value: Expr) -> tuple[str, Sequence[Expr]]:
    match value:
        case Call(Op(name), args):
            return name, args
        case Tuple(fields):  # several results
            return "tuple", fields
        case _:
            raise ValueError(f"numpy has nothing for {type(value).__name__}")


# %% Registered, it is a candidate wherever it says so. Neighbours become one call.
register_engine(NumpyEngine())
executable = unity.compile(main, resolve="engine:numpy")
check(executable)
table = executable.explain()
print(table)
assert table.counts() == {"engine:numpy": 4, "tir": 1}
assert len({row.group for row in table if row.choice == "engine:numpy"}) == 1
print([candidate.text for candidate in table["sin"].candidates])

# %% What it compiled is stored with the executable (`save`), and loaded where that runs (`load`).
# There the engine has to be known: registered, as here, or by an entry point of the group
# ``unity.engines`` of the package that brings it. The compiler is not needed.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.unity"
    executable.save(path)
    check(unity.runtime.load(path))

# %% It takes part in every policy: here the clock decides between it and what else there is.
measured = unity.compile(main, resolve="measure", sizes={"n": 100})
check(measured)
print([f"{road.name} {road.text}" for road in measured.explain().roads])

# %% What it raises becomes an error that names it; nothing is computed wrongly instead.
TAKES["add"] = lambda x, y: 1 / 0
try:
    executable(np.ones((1, 64), np.float32), w)
except unity.UnityError as error:
    print(error)
TAKES["add"] = np.add

# %% A C function needs less: where its library is, a kernel that calls it, what it computes in
# numpy, and a pattern that it can stand for. From then on it is a candidate, called natively.
SharedLibrary("maths", lambda: [ctypes.util.find_library("m") or "libm.so.6"]).register()


@script.prim_func
def cube_roots(x: f32[Buffer, n], y: f32[Buffer, n]) -> None:
    for i in range(n):
        y[i] = T.call_extern("maths.cbrtf", x[i], dtype="float32")


register_library_function(
    LibraryFunction(
        "maths.cbrt",
        fixed_kernel(cube_roots),
        np.cbrt,
        pattern=op("power", any_("x"), 1 / 3),
        inputs=("x",),
    )
)


# %% The pattern is the power of a third, so this program needs no change to use it.
@script.function
def radius(volume: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.multiply(R.power(volume, 0.33333334), 0.62035049)


executable = unity.compile(radius, resolve={"power": "library:maths"})
assert executable.explain().counts() == {"library:maths.cbrt": 1, "tir": 1}
volumes = rng.random(1000, np.float32)
expected = np.cbrt(volumes * 3 / (4 * np.pi))
np.testing.assert_allclose(executable(volumes), expected, rtol=1e-5)
print(executable.explain())
