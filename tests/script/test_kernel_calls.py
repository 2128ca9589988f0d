"""Kernels that call kernels: their bodies stand there, over what they are given."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.errors import UnityError
from unity.interpreter import run_prim_func
from unity.ir.module import IRModule
from unity.ir.prim_expr import SizeVar
from unity.ir.signature import size_params
from unity.script import Buffer, T, dim, f32, parse, prim_func, print_module

n, k = dim("n"), dim("k")
Floats = npt.NDArray[np.float32]

SCALED = """
n = dim("n")
m = dim("m")

@script.prim_func
def scaled(x: f32[Buffer, m], y: f32[Buffer, m], by: T.scalar("float32")) -> None:
    t = T.alloc((1,), "float32")
    t[0] = by
    for i in range(m):
        y[i] = x[i] * t[0] + by
"""

OTHERS = """
@script.prim_func
def square(x: f32[Buffer, m, m]) -> None:
    x[0, 0] = 1.0

@script.prim_func
def wide(x: f32[Buffer, m]) -> None:
    x[T.ramp(0, 1, 4)] = T.broadcast(1.0, 4)
"""


@prim_func
def plus(a: f32[Buffer, n, k], b: f32[Buffer, n, k]) -> None:
    for i, j in T.grid(n, k):
        with T.block("plus"):
            vi, vj = T.axis.remap("SS", i, j)
            b[vi, vj] = a[vi, vj] + 1.0


@prim_func
def thrice(a: f32[Buffer, 4, n], b: f32[Buffer, 4, n]) -> None:
    t = T.alloc((4, n), "float32")
    plus(a, t)
    plus(t, b=b)
    plus(b, b)


def run(module: IRModule, name: str, x: Floats) -> Floats:
    """What the interpreter makes of a kernel with one output like its input."""
    func = module.prim_funcs()[name]
    sizes = {v: int(x.shape[-1]) for v in size_params(func)}
    (got,) = run_prim_func(func, [x], sizes)
    return got.astype(np.float32)


def test_they_are_called_by_name() -> None:
    """Sizes are bound by shapes; what they allocate and bind is new at each call."""
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    module = IRModule({"thrice": thrice.func})
    np.testing.assert_array_equal(run(module, "thrice", x), x + 3)
    np.testing.assert_array_equal(unity.compile(module)(x), x + 3)
    printed = print_module(module)
    assert print_module(parse(printed)) == printed


def test_scalars_are_found_once_and_converted_to_what_is_declared() -> None:
    module = parse(
        SCALED
        + """
@script.prim_func
def main(x: f32[Buffer, n], y: f32[Buffer, n]) -> None:
    z = T.alloc((n,), "float32")
    scaled(x, z, 2)
    for j in range(3):
        scaled(z, y, by=z[0] + T.cast("float32", j))
"""
    )
    x = np.arange(5, dtype=np.float32)
    z = x * 2 + 2
    want = z * (z[0] + 2) + (z[0] + 2)
    np.testing.assert_array_equal(run(module, "main", x), want)
    np.testing.assert_array_equal(unity.compile(IRModule({"main": module["main"]}))(x), want)


def test_a_size_is_what_it_was_at_the_call() -> None:
    """The kernel changes the memory that it was read from."""
    module = parse("""
@script.prim_func
def fill(p: i64[Buffer, 1], y: f32[Buffer, 4], k: T.size) -> None:
    p[0] = 4
    for i in range(k):
        if i < 4:
            y[i] = T.cast("float32", k)

@script.prim_func
def main(x: f32[Buffer, 4], y: f32[Buffer, 4]) -> None:
    p = T.alloc((1,), "int64")
    p[0] = 2
    for i in range(4):
        y[i] = x[i]
    fill(p, y, p[0])
""")
    x = np.zeros(4, np.float32)
    np.testing.assert_array_equal(run(module, "main", x), [2, 2, 0, 0])
    np.testing.assert_array_equal(
        unity.compile(IRModule({"main": module["main"]}))(x), [2, 2, 0, 0]
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("scaled(x, z)", "scaled needs 'by'"),
        ("scaled(x, z, 1.0, 2.0)", "takes 3 arguments"),
        ("scaled(x, x[0], 1.0)", "'y' is a buffer, got a value"),
        ("scaled(x, z, z)", "'by' is float32, got the buffer z"),
        ("scaled(x, w, 1.0)", "'y' is float32(n) in global, got float32(n + 1) in global"),
        ("scaled(x, v, 1.0)", "'y' is float32(n) in global, got float32(n, 2) in global"),
        ("scaled(w, T.address_of(x[0]), 1.0)", "'y' is float32(n + 1) in global, which does not"),
        ("scaled(x, T.address_of(z[1]), 1.0)", "from z[1] on"),
        ("scaled(x, T.address_of(w[-1]), 1.0)", "from w[-1] on"),
        ("scaled(x, z, T.address_of(z[0]))", "'by' is float32, got int64"),
        ("scaled(x, T.address_of(d[0]), 1.0)", "got float64(n) in global"),
        ("square(x)", "'x' is float32(m, m) in global, got the buffer x, which does not tell m"),
        ("wide(v)", "accessed by lanes, which are no lanes of v"),
        ("scaled(x, d, 1.0)", "'y' is float32(n) in global, got float64(n) in global"),
        ("below(x, z)", "unknown name 'below'"),
        ("z[0] = scaled(x, z, 1.0)", "kernels call kernels only, as a statement"),
    ],
)
def test_what_does_not_fit_is_refused(call: str, message: str) -> None:
    text = f"""
@script.prim_func
def main(x: f32[Buffer, n], z: f32[Buffer, n]) -> None:
    w = T.alloc((n + 1,), "float32")
    d = T.alloc((n,), "float64")
    v = T.alloc((n, 2), "float32")
    {call}

@script.prim_func
def below(x: f32[Buffer, n], z: f32[Buffer, n]) -> None:
    z[0] = x[0]
"""
    with pytest.raises(UnityError) as caught:
        parse(SCALED + OTHERS + text)
    assert message in caught.value.message, caught.value.message
    assert caught.value.span is not None


def test_buffers_of_as_many_elements_in_another_shape() -> None:
    """A kernel of one axis is given all elements; one of several gives their sizes."""
    module = parse(
        SCALED
        + """
@script.prim_func
def rows(x: f32[Buffer, n, 2, 6], y: f32[Buffer, n, 2, 6], by: f32[Buffer, ()]) -> None:
    for i, j, k in T.grid(n, 2, 6):
        with T.block("rows"):
            vi, vj, vk = T.axis.remap("SSS", i, j, k)
            y[vi, vj, vk] = x[vi, vj, vk] * by[()]

@script.prim_func
def main(x: f32[Buffer, n, 12], y: f32[Buffer, n * 3, 4]) -> None:
    z = T.alloc((n, 2, 6), "float32")
    one = T.alloc((1, 1), "float32")
    one[0, 0] = 3.0
    scaled(x, z, 2.0)
    rows(z, y, one)
"""
    )
    x = np.arange(36, dtype=np.float32).reshape(3, 12)
    want = ((x * 2 + 2) * 3).reshape(9, 4)
    (got,) = run_prim_func(module.prim_funcs()["main"], [x], {SizeVar("n"): 3})
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(unity.compile(IRModule({"main": module["main"]}))(x), want)
    printed = print_module(module)
    assert print_module(parse(printed)) == printed


@pytest.mark.parametrize("seed", range(20))
def test_pointers_into_buffers_of_any_shape(seed: int) -> None:
    """Elements are those that lie there in numpy's memory."""
    random = np.random.default_rng(seed)
    whole = [int(e) for e in random.integers(1, 5, random.integers(1, 4))]
    begin, own = int(random.integers(0, np.prod(whole))), [1]
    room = int(np.prod(whole)) - begin
    for _ in range(random.integers(1, 4)):
        own.append(int(random.integers(1, room // int(np.prod(own)) + 1)))
    taken = int(np.prod(own))
    names = ["h", "i", "j", "k"][: len(own)]
    loops, axes = ", ".join(names), ", ".join(f"v{v}" for v in names)
    place = " + ".join(f"v{v} * {int(np.prod(own[k + 1 :]))}" for k, v in enumerate(names))
    at = ", ".join(map(str, np.unravel_index(begin, whole)))
    shape = ", ".join(map(str, whole))
    module = parse(f"""
@script.prim_func
def counted(y: f32[Buffer, {", ".join(map(str, own))}]) -> None:
    for {loops} in T.grid({", ".join(map(str, own))}):
        with T.block("counted"):
            {axes} = T.axis.remap("{"S" * len(own)}", {loops})
            y[{axes}] = T.cast("float32", 1 + {place})

@script.prim_func
def main(y: f32[Buffer, {shape}]) -> None:
    counted(T.address_of(y[{at}]))
""")
    got = np.zeros(whole, np.float32)
    run_prim_func(module.prim_funcs()["main"], [got])
    want = np.zeros(whole, np.float32)
    want.reshape(-1)[begin : begin + taken] = np.arange(1, 1 + taken)
    np.testing.assert_array_equal(got, want)


def test_what_is_not_known_of_a_pointer_is_checked_when_it_runs() -> None:
    module = parse("""
n = dim("n")

@script.prim_func
def four(y: f32[Buffer, 4], p: i64[Buffer, 1]) -> None:
    for i in range(4):
        y[i] = 7.0

@script.prim_func
def main(x: f32[Buffer, n, 4], p: i64[Buffer, 1], y: f32[Buffer, n, 4]) -> None:
    for i, j in T.grid(n, 4):
        y[i, j] = x[i, j]
    four(T.address_of(y[p[0], 0]), p)
""")
    func = module.prim_funcs()["main"]
    run = unity.compile(IRModule({"main": func}))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    want = x.copy()
    want[1] = 7
    np.testing.assert_array_equal(run(x, np.array([1])), want)
    said = r"four: 'y' is float32\(4\) in global, which does not lie in y, float32\(n, 4\)"
    for outside in (3, -1):
        given = np.array([outside])
        with pytest.raises(UnityError, match=said):
            run(x, given)
        with pytest.raises(UnityError, match=said):
            run_prim_func(func, [x, given], {SizeVar("n"): 3})
