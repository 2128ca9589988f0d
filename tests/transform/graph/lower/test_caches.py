"""Caches in place: what becomes one, what a function may write over, and that nobody sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import unity
from tests.transform.cases import apply, floats
from unity.caches import with_caches
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.graph import CallTir
from unity.ir.module import IRModule
from unity.ir.visit import walk_bindings
from unity.script import parse, print_module
from unity.transform import Context, pipeline
from unity.transform.graph import FuseAttention, LegalizeOps, LowerCalls, Normalize, PlanMemory

HEAD = """
p = dim("p")
t = dim("t")
r = dim("r")
"""
APPEND = """
@script.function(attrs={"aliases": ((0, 1),)})
def main(x: f32[Tensor, 2, t, 3], cache: f32[Tensor, 2, p + t + r, 3], n: R.Shape(p, r))
"""


def program(body: str, result: str = "f32[Tensor, 2, p + t + r, 3]") -> str:
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    head = APPEND.strip().replace("def main(", "def main(\n    ").replace(")\n", ")\n")
    return f"{HEAD}{head} -> {result}:\n{lines}"


ONE = program("y = R.nn.cache_append(cache, x, length=p, axis=1)\nreturn y")


def both(executable: unity.Executable) -> tuple[Callable[..., Any], ...]:
    """The main function as native code and as bytecode."""
    return executable, lambda *args: executable._vm.run("main", args)


def in_place(module: IRModule) -> list[tuple[int, ...]]:
    main = module.graph_functions()["main"]
    return [b.value.inplace for b in walk_bindings(main) if isinstance(b.value, CallTir)]


def test_a_cache_that_was_given_away_is_written_in_place() -> None:
    module = apply([LegalizeOps()], ONE)
    assert in_place(module) == [(0,)]
    planned = apply([LegalizeOps(), LowerCalls(), PlanMemory()], ONE)
    assert "alloc" not in print_module(planned)


PAIR = "R.Tuple(f32[Tensor, 2, p + t + r, 3], f32[Tensor, 2, p + t + r, 3])"


@pytest.mark.parametrize(
    ("body", "result"),
    [
        # The old content is a result as well, is read afterwards, or before.
        ("y = R.nn.cache_append(cache, x, length=p, axis=1)\nz = (y, cache)\nreturn z", PAIR),
        (
            "y = R.nn.cache_append(cache, x, length=p, axis=1)\n"
            "w = R.exp(cache)\nz = (y, w)\nreturn z",
            PAIR,
        ),
        (
            "w = R.exp(cache)\ny = R.nn.cache_append(cache, x, length=p, axis=1)\n"
            "z = (y, w)\nreturn z",
            PAIR,
        ),
        # Written twice: only the first may be done in place, the second on its result.
        (
            "w = R.nn.cache_append(cache, x, length=p, axis=1)\n"
            "y = R.nn.cache_append(w, R.exp(x), length=p, axis=1)\nz = (y, w)\nreturn z",
            PAIR,
        ),
        # What is returned in the cache's place is something else.
        ("y = R.nn.cache_append(R.exp(cache), x, length=p, axis=1)\nreturn y", None),
        ("return cache", None),
    ],
)
def test_results_are_right_whatever_else_reads_the_cache(body: str, result: str | None) -> None:
    module = parse(program(body, result) if result else program(body))
    for t, p, r in ((1, 4, 2), (3, 0, 0), (5, 7, 9), (0, 2, 1)):
        x, cache = floats(t, (2, t, 3), (2, p + t + r, 3))
        want = interpret(module, "main", [x, cache.copy(), (p, r)])
        executable = unity.compile(module)
        for run in both(executable):
            given = cache.copy()
            got = run(x, given, (p, r))
            results = got if isinstance(got, tuple) else (got,)
            wanted: Any = want if isinstance(want, tuple) else (want,)
            assert results[0] is given
            for a, b in zip(results, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5)


def test_in_a_loop_nothing_is_written_in_place() -> None:
    text = """
p = dim("p")
t = dim("t")
@script.function(attrs={"aliases": ((0, 1),)})
def main(
    x: f32[Tensor, t, 3], cache: f32[Tensor, p + t, 3], n: R.Shape(p)
) -> f32[Tensor, p + t, 3]:
    i = R.const(0, "int64")
    y = R.zeros((p + t, 3), dtype="float32")
    while R.less(i, 3):
        y = R.nn.cache_append(cache, R.add(x, R.sum(y)), length=p, axis=0)
        i = R.add(i, 1)
    return y
"""
    module = parse(text)
    assert "inplace" not in print_module(apply([Normalize(), LegalizeOps()], module))
    x, cache = floats(0, (2, 3), (6, 3))
    want: Any = interpret(module, "main", [x, cache.copy(), (4,)])
    got = unity.compile(module)(x, cache, (4,))
    np.testing.assert_allclose(got, want, rtol=1e-5)
    assert got is cache


def test_swapped_caches_are_put_in_their_places() -> None:
    text = """
n = dim("n")
@script.function(attrs={"aliases": ((0, 0), (1, 1))})
def main(a: f32[Tensor, n], b: f32[Tensor, n]) -> R.Tuple(f32[Tensor, n], f32[Tensor, n]):
    z = (b, a)
    return z
"""
    executable = unity.compile(parse(text))
    for run in both(executable):
        a, b = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
        x, y = run(a, b)
        assert x is a
        assert y is b
        np.testing.assert_array_equal(a, np.ones(5))
        np.testing.assert_array_equal(b, np.arange(5))


def test_what_may_not_be_written_to_is_copied() -> None:
    executable = unity.compile(parse(ONE))
    x, cache = floats(0, (2, 1, 3), (2, 4, 3))
    cache.flags.writeable = False
    before = cache.copy()
    got = executable(x, cache, (1, 2))
    np.testing.assert_array_equal(cache, before)
    np.testing.assert_array_equal(got[:, 1:2], x)


@pytest.mark.parametrize("seed", range(8))
def test_random_caches_are_appended_to(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 5))
    axis = int(rng.integers(0, rank))
    kind = str(rng.choice(["float32", "int64", "float16", "bool"]))
    dims = [int(rng.choice([1, 2, 3, 17, 64])) for _ in range(rank)]
    name = {"float32": "f32", "int64": "i64", "float16": "f16", "bool": "boolean"}[kind]
    rest = [str(n) for n in dims]
    new, whole = list(rest), list(rest)
    new[axis], whole[axis] = "t", "p + t + r"
    text = f"""{HEAD}
@script.function(attrs={{"aliases": ((0, 0),)}})
def main(
    cache: {name}[Tensor, {", ".join(whole)}], x: {name}[Tensor, {", ".join(new)}], n: R.Shape(p, r)
) -> {name}[Tensor, {", ".join(whole)}]:
    return R.nn.cache_append(cache, x, length=p, axis={axis})
"""
    executable = unity.compile(parse(text))
    for t, p, r in ((1, 5, 3), (4, 0, 2), (33, 9, 0), (0, 3, 3)):
        dims[axis] = t
        x = (rng.standard_normal(dims) * 3).astype(kind)
        dims[axis] = p + t + r
        cache = (rng.standard_normal(dims) * 3).astype(kind)
        want = cache.copy()
        want[(slice(None),) * axis + (slice(p, p + t),)] = x
        assert executable(cache, x, (p, r)) is cache
        np.testing.assert_array_equal(cache, want)


@pytest.mark.parametrize(
    ("length", "shape", "message"),
    [
        ("p", "2, p + t, 3", None),
        ("p", "2, p + r, 3", "can't prove that rows p to p \\+ t lie within p \\+ r"),
        ("r", "2, p + t, 3", "can't prove that rows r to r \\+ t lie within p \\+ t"),
        ("p - 1", "2, p + t, 3", "can't prove that rows p - 1"),
        ("p", "3, p + t, 3", "'new' along axis 0"),
        ("p", "2, p + t", "the ranks differ"),
    ],
)
def test_an_append_must_fit(length: str, shape: str, message: str | None) -> None:
    text = f"""{HEAD}
@script.function
def main(
    x: f32[Tensor, 2, t, 3], cache: f32[Tensor, {shape}], n: R.Shape(p, r)
) -> f32[Tensor, {shape}]:
    return R.nn.cache_append(cache, x, length={length}, axis=1)
"""
    if message is None:
        parse(text)
        return
    with pytest.raises(UnityError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("aliases", "message"),
    [
        ("((0, 0),)", "result 0 is float32"),
        ("((1, 1),)", "is no result and parameter"),
        ("((0, 5),)", "is no result and parameter"),
        ("((0, -1),)", "is no result and parameter"),
        ("(0, 1)", "must hold pairs"),
        ("((0, True),)", "must hold pairs"),
    ],
)
def test_wrong_aliases_are_refused(aliases: str, message: str) -> None:
    with pytest.raises(UnityError, match=message):
        unity.compile(parse(ONE.replace("((0, 1),)", aliases)))


def test_what_is_written_over_shares_no_memory_with_other_inputs() -> None:
    executable = unity.compile(parse(ONE))
    memory = np.zeros((2, 8, 3), np.float32)
    flat = memory.reshape(-1)
    x, cache = flat[:12].reshape(2, 2, 3), flat[6:42].reshape(2, 6, 3)
    message = "input 'x' and input 'cache' share memory"
    with pytest.raises(UnityError, match=message):
        executable(x, cache, (3, 1))
    with pytest.raises(UnityError, match=message):
        executable.run({"x": x, "cache": cache, "n": (3, 1)})
    apart = flat[12:].reshape(2, 6, 3)
    assert executable(x + 1, apart, (3, 1)) is apart
    assert executable(x, apart, (3, 1)) is apart


def test_only_python_may_call_what_writes_over_its_arguments() -> None:
    text = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return other(x)

@script.function(attrs={"aliases": ((0, 0),)})
def other(x: f32[Tensor, n]) -> f32[Tensor, n]:
    return R.exp(x)
"""
    with pytest.raises(UnityError, match="other writes over its arguments"):
        unity.compile(parse(text))


MODEL = """
p = dim("p")
q = dim("q")
t = dim("t")
@script.function
def main(
    x: f32[Tensor, t, 4], past: f32[Tensor, p, 4], other: f32[Tensor, q, 4]
) -> R.Tuple(f32[Tensor, p + t, 4], f32[Tensor, q + t, 4], f32[Tensor, t + p, 4]):
    a = R.concat((past, x), axis=0)
    b = R.concat((other, x), axis=0)
    c = R.concat((x, R.exp(past)), axis=0)
    result = (a, b, c)
    return result
"""


@pytest.mark.parametrize(
    ("caches", "message"),
    [
        ({"output0": "past"}, "'past' is used by more than the concat"),
        ({"output9": "past"}, "no output 'output9'"),
        ({"output0": "x9"}, "no input 'x9'"),
        ({"output1": "past"}, "'output1' continues 'other', not 'past'"),
        ({"output2": "past"}, "'output2' continues 'x', not 'past'"),
        ({"output0": "past", "output1": "other"}, "another cache q \\+ t"),
        (["output0"], "must be True or a dict"),
    ],
)
def test_what_is_no_cache_is_refused(caches: Any, message: str) -> None:
    with pytest.raises(UnityError, match=message):
        with_caches(parse(MODEL), caches)


def test_one_cache_of_several_may_be_kept() -> None:
    executable = unity.compile(parse(MODEL), caches={"output1": "other"})
    session = executable.session(capacity=10)
    x, past = floats(0, (2, 4), (3, 4))
    for _ in range(3):
        found = session.run({"x": x, "past": past})
        assert list(found) == ["output0", "output2"]
    np.testing.assert_array_equal(session.caches()["other"], np.concatenate([x] * 3))


def test_the_check_covers_functions_with_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []
    plain = unity.Executable.__getitem__

    def noting(self: unity.Executable, name: str) -> Callable[..., Any]:
        def call(*args: object) -> Any:
            given.extend(args)
            return plain(self, name)(*args)

        return call

    monkeypatch.setattr(unity.Executable, "__getitem__", noting)
    unity.compile(parse(MODEL), caches={"output1": "other"}, check=True)
    assert given[-1] == (3, 3)


def test_a_past_of_fixed_length_is_refused_with_a_hint() -> None:
    text = MODEL.replace("f32[Tensor, q", "f32[Tensor, 7")
    with pytest.raises(UnityError, match=r"dynamic=\{'other': \{0: 'past'\}\}"):
        with_caches(parse(text), {"output1": "other"})


def test_a_model_without_caches_is_refused() -> None:
    text = "@script.function\ndef main(x: f32[Tensor, 4]) -> f32[Tensor, 4]:\n    return R.exp(x)\n"
    with pytest.raises(UnityError, match="no output is an input with rows put behind it"):
        unity.compile(parse(text), caches=True)


def test_attention_reads_the_rows_in_use_where_they_are() -> None:
    text = """
p = dim("p")
t = dim("t")
@script.function
def main(
    q: f32[Tensor, 1, 2, t, 4], k: f32[Tensor, 1, 2, t, 4], past_k: f32[Tensor, 1, 2, p, 4],
    past_v: f32[Tensor, 1, 2, p, 4]
) -> R.Tuple(f32[Tensor, 1, 2, t, 4], f32[Tensor, 1, 2, p + t, 4], f32[Tensor, 1, 2, p + t, 4]):
    keys = R.concat((past_k, k), axis=2)
    values = R.concat((past_v, k), axis=2)
    weights = R.nn.softmax(R.matmul(q, R.permute_dims(keys, (0, 1, 3, 2))), axis=-1)
    y = R.matmul(weights, values)
    result = (y, keys, values)
    return result
"""
    kept = with_caches(parse(text), True)
    module = apply([Normalize(), FuseAttention()], kept)
    text = print_module(module)
    assert "keys=p + t" in text
    lowered = pipeline().run(kept, Context())
    assert "strided_slice" not in print_module(lowered)
