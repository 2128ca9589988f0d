"""Memory of large results is used again, but never while somebody holds it."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

import unity
from unity.ir.dtype import Array
from unity.runtime.arrays.recycle import GENERATIONS, LEAST, Recycler, rounded
from unity.runtime.executable import Executable
from unity.script import parse

Floats = npt.NDArray[np.float32]
SOURCE = """
n = dim("n")

@script.function
def main(x: f32[Tensor, n]) -> R.Tuple(f32[Tensor, n], f32[Tensor, n]):
    result = (R.add(x, x), R.multiply(x, x))
    return result
"""
LARGE = LEAST // 4


def compiled() -> Executable:
    """Two results of any length."""
    return unity.compile(parse(SOURCE), threads=1)


def run(executable: Executable, x: Floats) -> tuple[Floats, Floats]:
    """A call; both results must be right when it returns."""
    found = executable(x)
    assert isinstance(found, tuple)
    doubled, squared = found
    np.testing.assert_array_equal(doubled, x + x)
    np.testing.assert_array_equal(squared, x * x)
    return doubled, squared


def test_results_that_are_gone_leave_their_memory_to_the_next_call() -> None:
    executable = compiled()
    assert executable.native()["main"] == "native"
    x = np.arange(LARGE, dtype=np.float32)
    places = {r.ctypes.data for r in run(executable, x)}
    assert {r.ctypes.data for r in run(executable, x)} == places
    assert all(place % 64 == 0 for place in places)


def test_results_that_are_held_stay_as_they_are() -> None:
    executable = compiled()
    held: list[tuple[Floats, Floats]] = []
    for k in range(8):
        result = run(executable, np.full(LARGE + k, k, np.float32))
        if k % 2:
            held.append(result)
        del result
    part = run(executable, np.full(LARGE, 9, np.float32))[0][5:10]  # a view holds it as well
    run(executable, np.full(LARGE, 10, np.float32))
    assert (part == 18).all()
    for k, (doubled, squared) in zip((1, 3, 5, 7), held, strict=True):
        assert (doubled == 2 * k).all()
        assert (squared == k * k).all()


def test_results_outlive_their_executable() -> None:
    executable = compiled()
    x = np.arange(LARGE, dtype=np.float32)
    doubled, _ = run(executable, x)
    del executable
    gc.collect()
    np.testing.assert_array_equal(doubled, x + x)
    doubled += 1
    del doubled  # nobody is left to take it back


def test_results_are_plain_arrays_that_may_be_written_and_passed_on() -> None:
    executable = compiled()
    x = np.ones(LARGE, np.float32)
    for _ in range(4):
        (x, _) = run(executable, x)
    assert (x == 16).all()
    assert x.flags.writeable
    assert x.flags.c_contiguous
    assert type(x) is np.ndarray


def test_threads_do_not_get_each_others_memory() -> None:
    executable = compiled()

    def calls(k: int) -> None:
        for i in range(10):
            first = run(executable, np.full(LARGE + 64 * i, k, np.float32))
            second = run(executable, np.full(LARGE, -k, np.float32))
            assert (first[0] == 2 * k).all()
            assert (second[0] == -2 * k).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(calls, range(1, 5)))


def test_no_more_is_kept_than_two_calls_take() -> None:
    home = Recycler()
    for size in range(LEAST, 9 * LEAST, LEAST):
        held = [home.lease(size, nth) for nth in range(3)]
        held = [home.lease(size, nth) for nth in range(3)]
        del held
        assert home.kept <= GENERATIONS * 3 * rounded(size)
    for _ in range(3):  # what larger ones took goes with the calls that give less
        held = [home.lease(LEAST, nth) for nth in range(3)]
        del held
    assert home.kept <= GENERATIONS * 3 * LEAST


def test_two_generations_lie_in_turn_where_the_last_result_is_held() -> None:
    home = Recycler()
    places: list[int] = []
    result = home.lease(LEAST, 0)
    for _ in range(6):
        result = home.lease(LEAST, 0)
        places.append(result.ctypes.data)
    assert len(set(places)) == 2
    kept_by_user = [home.lease(LEAST, 0) for _ in range(5)]
    assert len({x.ctypes.data for x in (result, *kept_by_user)}) == 6
    assert home.kept == 2 * LEAST


def test_whatever_holds_memory_keeps_it() -> None:
    """A view of it, bytes, another library's tensor, a capsule: the next lease lies elsewhere."""
    home = Recycler()
    for hold in (
        lambda x: x[3:5],
        lambda x: x.data,
        np.asarray,
        lambda x: x.view(np.int32).T,
        iter,
    ):
        first = home.lease(LEAST, 0)
        place, held = first.ctypes.data, hold(first)
        del first
        assert home.lease(LEAST, 0).ctypes.data != place
        del held
        assert home.lease(LEAST, 0).nbytes == LEAST


class Collecting(Recycler):
    """Garbage is collected in the middle of its work, as may happen in any call."""

    __slots__ = ()

    def _keep(self, room: int, memory: Array) -> None:
        gc.collect()
        super()._keep(room, memory)


class Cycle:
    """Garbage that only the collector finds; it holds memory, and asks for some when it goes."""

    def __init__(self, home: Recycler, held: Array) -> None:
        self.home, self.held, self.me = home, held, self
        self.asked: list[Array] = []

    def __del__(self) -> None:
        self.asked.append(self.home.lease(4 * LEAST, 0))


def test_memory_that_is_asked_for_amid_a_lease_is_given() -> None:
    gc.freeze()  # what other tests hold is not looked at
    home = Collecting()
    cycle = Cycle(home, home.lease(LEAST, 0))
    asked = cycle.asked
    gc.disable()
    try:
        del cycle
        found = home.lease(2 * LEAST, 1)
    finally:
        gc.enable()
    assert found.nbytes == 2 * LEAST
    assert [x.nbytes for x in asked] == [4 * LEAST]
    assert not np.shares_memory(found, asked[0])
