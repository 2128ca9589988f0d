"""Native code, the bytecode's interpreter and the reference interpreter agree."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import unity
from unity.interpreter import interpret
from unity.runtime.executable import Executable
from unity.runtime.native import supported
from unity.script import parse
from unity.transform.graph import CountNonzero

Numbers = npt.NDArray[np.generic]
HEAD = 'n = dim("n")\nm = dim("m")\n\n@script.function\n'
PROGRAMS: dict[str, str] = {
    "chain": """
def main(x: f32[Tensor, n, 4], k: i64[Tensor, ()], b: boolean[Tensor, ()]) -> f32[Tensor, n, 4]:
    y = R.nn.softmax(x, axis=-1)
    z = R.matmul(y, R.permute_dims(x, axes=(1, 0)))
    return R.matmul(z, y)
""",
    "choice": """
def main(x: f32[Tensor, n, 4], k: i64[Tensor, ()], b: boolean[Tensor, ()]) -> f32[Tensor, n, 4]:
    if b:
        y = R.exp(x)
    else:
        y = x
    return R.add(y, x)
""",
    "choice as the result": """
def main(x: f32[Tensor, n, 4], k: i64[Tensor, ()], b: boolean[Tensor, ()]) -> f32[Tensor, n, 4]:
    if b:
        y = R.exp(x)
    else:
        y = x
    return y
""",
    "loop with two states that swap": """
def main(x: f32[Tensor, n, 4], k: i64[Tensor, ()], b: boolean[Tensor, ()]) -> f32[Tensor, n, 4]:
    i = R.const(0, "int64")
    y = x
    previous = x
    while R.less(i, k):
        following = R.add(y, previous)
        previous = y
        y = following
        i = R.add(i, R.const(1, "int64"))
    return R.subtract(y, previous)
""",
    "loop whose branches keep states, compute them and swap them": """
def main(x: f32[Tensor, n, 4], k: i64[Tensor, ()], b: boolean[Tensor, ()]) -> f32[Tensor, n, 4]:
    i = R.const(0, "int64")
    y = x
    z = R.negative(x)
    kept = R.exp(x)
    while R.less(i, k):
        if R.less(i, R.const(2, "int64")):
            y = R.add(y, kept)
        else:
            if b:
                following = y
                y = z
                z = following
            else:
                z = R.add(z, y)
        i = R.add(i, R.const(1, "int64"))
    return R.subtract(R.multiply(y, kept), z)
""",
    "loop in a loop": """
def main(x: f32[Tensor, n, 4], k: i64[Tensor, ()], b: boolean[Tensor, ()]) -> f32[Tensor, n, 4]:
    i = R.const(0, "int64")
    y = x
    while R.less(i, k):
        j = R.const(0, "int64")
        while R.less(j, i):
            y = R.add(y, x)
            j = R.add(j, R.const(1, "int64"))
        i = R.add(i, R.const(1, "int64"))
    return y
""",
    "the same result twice, an input and a constant": """
def main(
    x: f32[Tensor, n, 4], k: i64[Tensor, ()], b: boolean[Tensor, ()]
) -> R.Tuple(f32[Tensor, n, 4], f32[Tensor, n, 4], f32[Tensor, n, 4], i64[Tensor, ()]):
    y = R.exp(x)
    return (y, x, y, R.const(3, "int64"))
""",
    "reshaped result": """
def main(x: f32[Tensor, n, 4], k: i64[Tensor, ()], b: boolean[Tensor, ()]) -> f32[Tensor, n * 4]:
    y = R.exp(x)
    return R.reshape(y, (n * 4,))
""",
    "match_cast": """
def main(x: f32[Tensor, n, 4], k: i64[Tensor, ()], b: boolean[Tensor, ()]) -> f32[Tensor, n, 4]:
    y = R.match_cast(x, f32[Tensor, m, 4])
    z = R.exp(y)
    w = R.match_cast(z, f32[Tensor, n, 4])
    return w
""",
}


def compiled(name: str) -> tuple[unity.IRModule, Executable]:
    module = parse(HEAD + PROGRAMS[name].lstrip())
    return module, unity.compile(module)


def same(a: object, b: object) -> None:
    if isinstance(b, tuple):
        assert isinstance(a, tuple)
        for x, y in zip(a, b, strict=True):
            same(x, y)
        return
    assert isinstance(a, np.ndarray)
    assert isinstance(b, np.ndarray)
    assert a.dtype == b.dtype
    np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-4, atol=1e-5)


@pytest.mark.rotated(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_three_ways_of_running_agree(name: str) -> None:
    module, exe = compiled(name)
    if supported():
        assert exe.native()["main"] == "native"
    rng = np.random.default_rng(0)
    for rows, count, flag in ((3, 4, True), (1, 0, False), (0, 2, True), (40, 1, False)):
        args = [rng.standard_normal((rows, 4), np.float32), np.asarray(count), np.asarray(flag)]
        expected = interpret(module, "main", args)
        same(exe(*args), expected)
        same(exe.trace(lambda event: None, *args), expected)


def test_results_own_their_memory() -> None:
    _, exe = compiled("the same result twice, an input and a constant")
    x = np.ones((2, 4), np.float32)
    result = exe(x, np.asarray(0), np.asarray(True))
    assert isinstance(result, tuple)
    arrays = [*result, x]
    for i, a in enumerate(arrays):
        for b in arrays[:i]:
            assert not np.shares_memory(a, b)


def test_what_is_not_native_says_why() -> None:
    text = HEAD + (
        "def main(x: f32[Tensor, n]) -> f32[Tensor, R.rank(1)]:\n"
        "    i = R.nonzero(x)\n"
        "    return R.take(x, R.reshape(i, (-1,)), axis=0)\n"
    )
    exe = unity.compile(parse(text), pipeline=unity.pipeline().without(CountNonzero))
    assert exe.native()["main"].startswith("bytecode: it calls Python")
    x = np.asarray([0, 2, 0, 3], np.float32)
    np.testing.assert_array_equal(np.asarray(exe(x)), [2, 3])


READ = """
def main(x: f32[Tensor, n], s: i64[Tensor, 2]) -> f32[Tensor, n]:
    sizes = R.match_cast(R.tensor_to_shape(R.add(s, s)), R.Shape(n, m))
    y = R.exp(R.exp(x))
    return R.multiply(y, R.astype(R.dims(values=(m,)), dtype="float32"))
"""


def test_sizes_read_from_a_tensor() -> None:
    module = parse(HEAD + READ.lstrip())
    exe = unity.compile(module)
    if supported():
        assert exe.native()["main"] == "native"
    x = np.linspace(-1, 1, 6, dtype=np.float32)
    for m in (0, 1, 2**33):  # the last is left to the bytecode
        s = np.asarray([3, m])
        same(exe(x, s), interpret(module, "main", [x, s]))
    for wrong in ([2, 5], [3, -1]):
        with pytest.raises(unity.UnityError, match="'sizes'"):
            exe(x, np.asarray(wrong))


def test_sizes_of_another_number_are_refused() -> None:
    text = (
        "def main(s: i64[Tensor, 2]) -> R.Shape(m):\n"
        "    return R.match_cast(R.tensor_to_shape(s), R.Shape(m))\n"
    )
    exe = unity.compile(parse(HEAD + text))
    with pytest.raises(unity.UnityError, match=r"expected a shape of 1 sizes, got \(3, 4\)"):
        exe(np.asarray([3, 4]))


def test_what_writes_over_its_inputs_reads_sizes_in_bytecode() -> None:
    """Sizes too large for native code are left to the bytecode: nothing may be done twice."""
    text = """
p = dim("p")
t = dim("t")
r = dim("r")
m = dim("m")

@script.function(attrs={"aliases": ((0, 1),)})
def main(
    x: f32[Tensor, 2, t, 3],
    cache: f32[Tensor, 2, p + t + r, 3],
    n: R.Shape(p, r),
    s: i64[Tensor, 1],
) -> f32[Tensor, 2, p + t + r, 3]:
    y = R.nn.cache_append(cache, x, length=p, axis=1)
    size = R.match_cast(R.tensor_to_shape(s), R.Shape(m))
    return y
"""
    exe = unity.compile(parse(text))
    assert exe.native()["main"] == "bytecode: it reads sizes, and writes over its inputs"


def test_a_check_inside_a_function_names_the_symbol() -> None:
    text = (
        'n = dim("n")\nm = dim("m", max=5)\n\n@script.function\n' + PROGRAMS["match_cast"].lstrip()
    )
    exe = unity.compile(parse(text))
    flags = (np.asarray(0), np.asarray(True))
    exe(np.ones((5, 4), np.float32), *flags)
    with pytest.raises(
        unity.UnityError, match=r"'y' axis 0: symbol m is 6, but it must be at most 5"
    ):
        exe(np.ones((6, 4), np.float32), *flags)


def test_inputs_too_small_for_a_computed_extent_are_refused() -> None:
    text = HEAD + (
        "def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n - 3, 4]:\n"
        "    y = R.strided_slice(x, axes=(0,), begin=(0,), end=(-3,), strides=(1,))\n"
        "    z = R.match_cast(y, f32[Tensor, n - 3, 4])\n"
        "    return R.exp(R.exp(z))\n"
    )
    exe = unity.compile(parse(text))
    small = np.zeros((1, 4), np.float32)
    with pytest.raises(unity.UnityError):
        exe(small)
    np.testing.assert_allclose(exe(np.zeros((5, 4), np.float32)), np.full((2, 4), np.e), rtol=1e-5)


def test_inputs_too_small_for_what_is_computed_on_the_way_are_refused() -> None:
    """A tensor of less than nothing makes the arena too small for the others as well."""
    text = HEAD + (
        "def main(x: f32[Tensor, 1, 2, n]):\n"
        "    padded = R.nn.pad(R.exp(x), pad_width=(0, 0, 0, 0, 1, 0))\n"
        "    y = R.nn.conv1d(padded, R.const('w'))\n"
        "    return R.nn.pad(R.exp(y), pad_width=(0, 0, 0, 0, 50, 50))\n"
    )
    exe = unity.compile(parse(text, {"w": np.ones((20, 2, 64), np.float32)}))
    with pytest.raises(unity.UnityError, match="would have the shape"):
        exe(np.zeros((1, 2, 5), np.float32))


def test_a_size_that_divides_by_0_is_refused() -> None:
    """No trap of the processor ends the process."""
    text = HEAD + (
        "def main(x: f32[Tensor, n, m]) -> f32[Tensor, n // m]:\n"
        "    return R.full((n // m,), R.const(1.0, 'float32'), dtype='float32')\n"
    )
    exe = unity.compile(parse(text))
    assert exe(np.zeros((6, 2), np.float32)).shape == (3,)
    with pytest.raises(unity.UnityError, match="a size divides by 0"):
        exe(np.zeros((6, 0), np.float32))


SCAN = """
def main(x: f32[Tensor, n, 4], s: f32[Tensor, 4]) -> R.Tuple(f32[Tensor, 4], f32[Tensor, n, 4]):
    def step(total: f32[Tensor, 4], previous: f32[Tensor, 4], row: f32[Tensor, 4]):
        following = R.add(total, R.multiply(previous, row))
        return (following, total, R.negative(following), row, total)
    done = R.scan(step, init=(s, s), inputs=(x,))
    return (done[0], R.add(R.add(done[2], done[3]), done[4]))
"""


@pytest.mark.skipif(not supported(), reason="no native code here")
def test_a_scan_is_a_native_loop_whose_states_swap() -> None:
    module = parse(HEAD + SCAN)
    executable = unity.compile(module)
    assert executable.native() == {"main": "native"}
    rng = np.random.default_rng(0)
    for count in (5, 1, 0, 3):
        args = [rng.standard_normal((count, 4), np.float32), rng.standard_normal(4, np.float32)]
        expected = interpret(module, "main", args)
        assert isinstance(expected, tuple)
        for got, want in zip(executable(*args), expected, strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5, atol=1e-5)


def test_sizes_that_wrap_are_refused_before_anything_is_allocated() -> None:
    """``n ** 4`` floats at 65536 are 2**66 bytes: 0, if sizes were taken modulo 2**64."""
    module = parse("""
n = dim("n")
m = dim("m")
@script.function
def inside(x: f32[Tensor, n]) -> f32[Tensor]:
    y = R.broadcast_to(R.reshape(x, (n, 1, 1, 1)), (n, n, n, n))
    return R.sum(R.cumsum(y, axis=0))
@script.function
def result(x: f32[Tensor, n]) -> f32[Tensor, n, n, n, n]:
    return R.broadcast_to(R.reshape(x, (n, 1, 1, 1)), (n, n, n, n))
@script.function
def small(x: f32[Tensor, n], y: f32[Tensor, m]) -> f32[Tensor, n * n * n // 1000000000000, m]:
    return R.zeros((n * n * n // 1000000000000, m), dtype="float32")
""")
    exe = unity.compile(module)
    assert set(exe.native().values()) == {"native"}
    for size in (65536, 1 << 20):
        with pytest.raises(
            unity.UnityError, match=rf"intermediate results: .*GiB, with n = {size}"
        ):
            exe["inside"](np.ones(size, np.float32))
        with pytest.raises(
            unity.UnityError, match=rf"the output.*{size}, {size}\] takes .*, with n = "
        ):
            exe["result"](np.ones(size, np.float32))
    got = exe["small"](np.ones(20000, np.float32), np.ones(3, np.float32))
    assert np.shape(got) == (8, 3)
    assert np.shape(exe["result"](np.ones(3, np.float32))) == (3, 3, 3, 3)
