"""break and continue in kernels: as Python does, of random programs, interpreted and compiled."""

from __future__ import annotations

import random
import textwrap
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.interpreter import run_prim_func
from unity.ir.module import IRModule
from unity.ir.signature import size_params
from unity.ir.stmt import PrimWhile
from unity.ir.visit import walk_stmt
from unity.script import parse, print_module
from unity.script.tvmscript import parse as parse_tvmscript

HEAD = """
n = dim("n")

@script.prim_func
def main(x: i64[Buffer, n], out: i64[Buffer, 2]) -> None:
    out[0] = 0
    out[1] = 0
"""
SIZE = 12
Ints = npt.NDArray[np.int64]


def suite(random: random.Random, depth: int, names: list[str], loops: int, indent: str) -> str:
    """Random statements; within a loop some that leave it, behind an if each."""
    lines = list[str]()
    for _ in range(random.randint(1, 3)):
        kind = random.choice(("add", "if", "for", "while", "leave") if depth else ("add", "leave"))
        read = f"x[({' + '.join([*names, str(random.randint(0, 9))])}) % n]"
        inner, deeper = indent + "    ", depth - 1
        if kind == "add" or (kind == "leave" and not loops):
            lines.append(f"{indent}out[{random.randint(0, 1)}] += {read} * {random.randint(1, 5)}")
        elif kind == "leave":
            word = random.choice(("break", "continue"))
            lines.append(f"{indent}if {read} > {random.randint(0, 6)}:\n{inner}{word}")
            if random.random() < 0.3:
                lines.append(f"{indent}else:\n{inner}out[1] += 1")
        elif kind == "if":
            lines.append(f"{indent}if {read} > {random.randint(0, 6)}:")
            lines.append(suite(random, deeper, names, loops, inner))
            if random.random() < 0.5:
                lines.append(f"{indent}else:")
                lines.append(suite(random, deeper, names, loops, inner))
        elif kind == "for":
            name = f"i{len(names)}_{random.randint(0, 10**6)}"
            lines.append(f"{indent}for {name} in range({random.randint(0, 1)}, {read} % 5 + 1):")
            lines.append(suite(random, deeper, [*names, name], loops + 1, inner))
        else:
            name = f"k{random.randint(0, 10**6)}"
            lines.append(f'{indent}{name} = T.alloc((1,), "int64")\n{indent}{name}[0] = 0')
            lines.append(f"{indent}while {name}[0] < {read} % 4 + 1:\n{inner}{name}[0] += 1")
            lines.append(suite(random, deeper, [*names, f"{name}[0]"], loops + 1, inner))
    return "\n".join(lines)


def by_python(body: str, x: Ints) -> Ints:
    """What Python makes of a kernel's body."""
    names = SimpleNamespace(alloc=lambda shape, dtype: np.zeros(shape, dtype), serial=range)
    out = np.zeros(2, np.int64)
    exec(textwrap.dedent(body), {"T": names, "x": x, "n": len(x), "out": out})
    return out


def run(module: IRModule, x: Ints) -> Ints:
    """What the interpreter makes of it."""
    func = module.prim_funcs()["main"]
    (got,) = run_prim_func(func, [x], {v: len(x) for v in size_params(func)})
    return got.astype(np.int64)


@pytest.mark.rotated(1)
@pytest.mark.parametrize("seed", range(60))
def test_random_loops_are_left_as_python_leaves_them(seed: int) -> None:
    body = suite(random.Random(seed), 3, [], 0, "    ")
    module = parse(HEAD + body + "\n")
    printed = print_module(module)
    assert print_module(parse(printed)) == printed
    compiled = unity.compile(module) if seed % 6 == 0 else None
    for case in range(4):
        x = np.random.default_rng((seed, case)).integers(0, 8, SIZE)
        want = by_python(body, x)
        np.testing.assert_array_equal(run(module, x), want)
        if compiled is not None:
            np.testing.assert_array_equal(compiled(x), want)


def test_a_loop_that_breaks_ends_there() -> None:
    """It is a while: what is left takes no time, and nothing is read behind the end."""
    module = parse(
        HEAD
        + """
    for i in T.serial(1, n):
        if x[i] > 3:
            out[0] = i
            break
"""
    )
    body = module.prim_funcs()["main"].body
    assert any(isinstance(s, PrimWhile) for s in walk_stmt(body))
    x = np.arange(8)
    np.testing.assert_array_equal(run(module, x), [4, 0])
    np.testing.assert_array_equal(run(module, x[:1]), [0, 0])


def test_how_far_a_loop_goes_is_asked_once() -> None:
    body = """
    out[1] = 3
    for i in range(out[1]):
        out[1] = 9
        out[0] += 1
        if x[0] > 100:
            break
"""
    np.testing.assert_array_equal(run(parse(HEAD + body), np.arange(4)), [3, 9])


def test_tvmscript_leaves_loops_as_it_is_written_and_printed() -> None:
    text = """
@T.prim_func
def main(x: T.Buffer((8,), "int64"), out: T.Buffer((2,), "int64")):
    out[0] = T.int64(0)
    out[1] = T.int64(0)
    for i in range(8):
        if x[i] < T.int64(2):
            {go_on}
        if x[i] > T.int64(5):
            {stop}
        out[0] = out[0] + x[i]
"""
    for go_on, stop in (
        ("continue", "break"),
        ("T.continue_loop()", "T.break_loop()"),
        ("T.evaluate(T.continue_loop())", "T.evaluate(T.break_loop())"),
    ):
        module = parse_tvmscript(text.format(go_on=go_on, stop=stop))
        np.testing.assert_array_equal(run(module, np.arange(8)), [2 + 3 + 4 + 5, 0])
