"""store_in: temporaries that lie in an output until it is written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.transform.tensor.kernels import after, assert_same
from unity.errors import UnityError
from unity.ir.stmt import PrimFunc
from unity.script import parse
from unity.transform.schedule import Schedule
from unity.transform.tensor import lowering


def stages(body: str, *, params: str = "", attrs: str = "") -> PrimFunc:
    return parse(f"""
@script.prim_func{attrs}
def main(x: f32[Buffer, 4, 6], y: f32[Buffer, 4, 6]{params}) -> None:
    t = T.alloc((4, 6), "float32")
    u = T.alloc((4, 6), "float32")
{body}""").prim_funcs()["main"]


def nest(name: str, value: str, extents: str = "4, 6") -> str:
    """One stage: ``t[vi, vj] = ...``."""
    a, b = extents.split(", ")
    return f"""
    for i, j in T.grid({extents}):
        with T.block("{name}"):
            vi = T.axis.spatial({a}, i)
            vj = T.axis.spatial({b}, j)
            {value}
"""


TWO = stages(
    nest("first", "t[vi, vj] = x[vi, vj] * 2.0")
    + nest("second", "u[vi, vj] = t[vi, vj] + x[vi, 5 - vj]")
    + nest("last", "y[vi, vj] = u[vi, vj] * u[vi, vj]")
)


def test_two_temporaries_one_after_the_other() -> None:
    sch = Schedule(TWO)
    sch.store_in("first", "t", "last", "y")
    sch.store_in("second", "u", "last", "y")
    assert "alloc" not in str(sch.func)
    assert_same(TWO, sch.func, {})
    row = sch.fuse_siblings(*(sch.get_loops(name)[0] for name in ("first", "second", "last")))
    sch.parallel(row)
    assert_same(TWO, after(sch.func, *lowering()), {})


REFUSED: dict[str, tuple[PrimFunc, Callable[[Schedule], object], str]] = {
    "what is read elsewhere than where it is written": (
        stages(nest("first", "t[vi, vj] = x[vi, vj]") + nest("last", "y[vi, vj] = t[vi, 5 - vj]")),
        lambda s: s.store_in("first", 0, "last", 0),
        "'last' does not read 't' at the one place where it writes",
    ),
    "a buffer that is touched meanwhile": (
        stages(
            nest("first", "t[vi, vj] = x[vi, vj]")
            + nest("early", "y[vi, vj] = x[vi, vj]")
            + nest("last", "y[vi, vj] = t[vi, vj]")
        ),
        lambda s: s.store_in("first", 0, "last", 0),
        "'early' touches 'y' while it would hold 't'",
    ),
    "a buffer that is read behind before it is written": (
        stages(
            nest("begin", "y[vi, vj] = x[vi, vj]")
            + nest("first", "t[vi, vj] = x[vi, vj]")
            + nest("sum", "u[vi, vj] = t[vi, vj]")
            + nest("again", "u[vi, vj] = y[vi, vj]")
            + nest("last", "y[vi, vj] = u[vi, vj]")
        ),
        lambda s: s.store_in("first", 0, "last", 0),
        "it is not the first to touch 'y' behind what uses 't'",
    ),
    "a part of a buffer": (
        stages(
            nest("first", "t[vi, vj] = x[vi, vj]")
            + nest("last", "y[vi, vj] = t[vi, vj]", extents="3, 6")
        ),
        lambda s: s.store_in("first", 0, "last", 0),
        "it is not known to write all of 'y'",
    ),
    "stages in one loop": (
        TWO,
        lambda s: (
            s.fuse_siblings(s.get_loops("second")[0], s.get_loops("last")[0]),
            s.store_in("first", 0, "last", 0),
        ),
        "'last' and 'second', which uses 't', share a loop",
    ),
    "a buffer of another shape": (
        stages(
            nest("first", "t[vi, vj] = x[vi, vj]") + nest("last", "z[vi] = t[vi, vj]"),
            params=", z: f32[Buffer, 4]",
        ),
        lambda s: s.store_in("first", 0, "last", 0),
        "'z' is no other buffer like 't'",
    ),
    "what is read where the output was": (
        stages(nest("first", "t[vi, vj] = x[vi, vj]") + nest("last", "y[vi, vj] *= t[vi, vj]")),
        lambda s: s.store_in("first", 0, "last", 0),
        "'last' reads both 't' and 'y'",
    ),
    "an output in an input's place": (
        stages(
            nest("first", "t[vi, vj] = x[vi, vj]") + nest("last", "y[vi, vj] = t[vi, vj]"),
            attrs='(attrs={"overwritable": (0,)})',
        ),
        lambda s: s.store_in("first", 0, "last", 0),
        "'y' may be an input's memory",
    ),
    "a parameter": (
        TWO,
        lambda s: s.store_in("last", 0, "second", 0),
        "store_in, argument 2 'index': 'y' is a parameter",
    ),
    "no such write": (
        TWO,
        lambda s: s.store_in("first", 0, "last", 1),
        "store_in, argument 4 'place': 'last' has 1 writes, got 1",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    func, step, message = REFUSED[case]
    with pytest.raises(UnityError) as error:
        step(Schedule(func))
    assert message in str(error.value)
