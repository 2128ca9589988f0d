"""Libraries for C hold functions that call each other, natively, as deep as the stack allows."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import unity
from tests.codegen.vm.native.test_calls import MODULE
from unity.errors import UnityError
from unity.script import parse
from unity.transform.graph import CountNonzero, InlineFunctions

from .tensors import Exported, Failed

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no linker of the system"
)
CALLED = unity.pipeline().without(InlineFunctions).without(CountNonzero)
"""What leaves calls as they are, and `R.nonzero` to numpy."""


@pytest.fixture(scope="module")
def exe() -> unity.Executable:
    return unity.compile(MODULE.without("found", "finder"), pipeline=CALLED)


@pytest.fixture(scope="module")
def library(exe: unity.Executable, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    path = tmp_path_factory.mktemp("calls") / "libmodel.so"
    exe.export_library(path)
    return Exported(path)


@pytest.mark.parametrize("n", [1, 7])
def test_results_of_calls_in_a_row_and_in_a_loop(
    exe: unity.Executable, library: Exported, n: int
) -> None:
    rng = np.random.default_rng(n)
    x, w = rng.standard_normal((n, 4), np.float32), rng.random((4, 4), np.float32) / 8
    args: list[np.ndarray] = [x, w]
    wanted = exe(*args)
    assert library.shapes(args, [y.ndim for y in wanted]) == [list(y.shape) for y in wanted]
    for _ in range(2):  # working memory is used again
        results = [np.full_like(y, np.nan) for y in wanted]
        library.run(args, results)
        for got, want in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(got, want)


def test_recursion_has_an_end(library: Exported) -> None:
    one, y = np.ones(3, np.float32), np.empty(3, np.float32)
    for depth in (0, 1, 200):
        library.run([one, np.array(depth)], [y], "product")
        np.testing.assert_allclose(y, np.exp(one) + depth, rtol=1e-5)
    with pytest.raises(Failed, match="a check inside the program failed"):
        library.run([one, np.array(2**62)], [y], "product")


def test_a_callees_checks_are_the_callers(library: Exported) -> None:
    x = np.full((3, 3), 2, np.float32)
    y = np.empty_like(x)
    library.run([x], [y], "squared")
    np.testing.assert_array_equal(y, x * x)
    none = np.zeros((0, 4), np.float32)
    with pytest.raises(Failed, match="a check inside the program failed"):
        library.run([none, np.zeros((4, 4), np.float32)], [np.empty(4, np.float32), none])


def test_sizes_that_a_function_reads_on_the_way(tmp_path: Path) -> None:
    unity.compile(parse(READ)).export_library(tmp_path / "libread.so")
    library = Exported(tmp_path / "libread.so")
    for x in (np.array([0, 2, 0, 3], np.float32), np.zeros(5, np.float32)):
        y = np.empty((), np.int64)
        library.run([x], [y])
        assert y == np.flatnonzero(x).sum()


READ = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n]) -> i64[Tensor, ()]:
    return R.sum(R.nonzero(x))
"""


def test_who_calls_bytecode_is_refused_with_the_reason(tmp_path: Path) -> None:
    exe = unity.compile(MODULE, pipeline=CALLED)
    with pytest.raises(UnityError) as error:
        exe.export_library(tmp_path / "libmodel.so")
    why = "it calls Python (op:nonzero)"
    assert str(error.value).splitlines()[1:] == [
        f"  - found is not native code: {why}",
        f"  - finder is not native code: it calls found, which is bytecode: {why}",
    ]
