"""set_dtype: temporaries of narrow floats that are held as wide ones."""

from __future__ import annotations

import pytest

from tests.transform.schedule.cases import Steps, assert_kept, assert_refused
from tests.transform.schedule.hostile import Program
from unity.transform.schedule import Schedule

ROWS = Program(
    "a: bf16[Buffer, 6, 5], c: bf16[Buffer, 6]",
    """
t = T.alloc((6,), "bfloat16")
u = T.alloc((6,), "bfloat16")
for i, k in T.grid(6, 5):
    with T.block("least"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            t[vi] = T.imm("bfloat16", "inf")
        t[vi] = T.min(t[vi], a[vi, vk])
for i in range(6):
    with T.block("flip"):
        vi = T.axis.spatial(6, i)
        u[vi] = T.max(t[5 - vi], a[vi, 0])
for i in range(6):
    with T.block("copy"):
        vi = T.axis.spatial(6, i)
        c[vi] = u[vi]
""",
    ({},),
)
SUMS = Program(
    "a: f32[Buffer, 6, 5], c: f32[Buffer, 6]",
    """
t = T.alloc((6,), "float32")
for i, k in T.grid(6, 5):
    with T.block("sum"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            t[vi] = 0.0
        t[vi] += a[vi, vk]
for i in range(6):
    with T.block("copy"):
        vi = T.axis.spatial(6, i)
        c[vi] = t[vi]
""",
    ({},),
)


def _both(s: Schedule) -> None:
    s.set_dtype("least", 0, "float32")
    s.set_dtype("flip", 0, "float64")
    s.decompose_reduction("least", s.get_loops("least")[1])


@pytest.mark.long("compiles a kernel of each kind")
def test_compiled() -> None:
    assert_kept(
        {
            "the least": (ROWS, lambda s: s.set_dtype("least", 0, "float32")),
            "what is stored once": (ROWS, lambda s: s.set_dtype("flip", 0, "float32")),
            "both": (ROWS, _both),
        }
    )


REFUSED: dict[str, tuple[Program, Steps, str]] = {
    "a parameter": (
        ROWS,
        lambda s: s.set_dtype("copy", 0, "float32"),
        "set_dtype, argument 2 'index': 'c' is a parameter, whose layout callers rely on",
    ),
    "sums": (
        SUMS,
        lambda s: s.set_dtype("sum", 0, "float64"),
        "set_dtype, argument 3 'dtype': what is kept in 't' is rounded with each step",
    ),
    "as narrow": (
        ROWS,
        lambda s: s.set_dtype("least", 0, "float16"),
        "set_dtype, argument 3 'dtype': not each bfloat16 of 't' is known to be a float16",
    ),
    "no float": (
        ROWS,
        lambda s: s.set_dtype("least", 0, "int64"),
        "set_dtype, argument 3 'dtype': not each bfloat16 of 't' is known to be a int64",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    assert_refused(*REFUSED[case])
