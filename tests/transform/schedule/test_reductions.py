"""Inits that go before loops with other blocks in them, and epilogues that go into inits."""

from __future__ import annotations

import pytest

from tests.transform.schedule.cases import Steps, assert_kept, assert_refused
from tests.transform.schedule.hostile import Program
from unity.transform.schedule import Schedule

PACKED = Program(
    "a: f32[Buffer, 4, n], b: f32[Buffer, n, 6], c: f32[Buffer, 4, 6], d: f32[Buffer, 4, 6]",
    """
t = T.alloc((n, 6), "float32")
s = T.alloc((4, 6), "float32")
for k, j in T.grid(n, 6):
    with T.block("pack"):
        vk, vj = T.axis.remap("SS", k, j)
        t[vk, vj] = b[vk, vj] * 2.0
for k, i, j in T.grid(n, 4, 6):
    with T.block("sum"):
        vi, vj, vk = T.axis.remap("SSR", i, j, k)
        with T.init():
            s[vi, vj] = 0.0
        s[vi, vj] += a[vi, vk] * t[vk, vj]
for i, j in T.grid(4, 6):
    with T.block("bias"):
        vi, vj = T.axis.remap("SS", i, j)
        d[vi, vj] = s[vi, vj] - c[vi, vj]
""",
    ({"n": 7}, {"n": 1}, {"n": 0}),
)
FIXED = Program(PACKED.params.replace("n", "8"), PACKED.body.replace("n,", "8,"))


def _packed(s: Schedule) -> None:
    steps, *_ = s.get_loops("sum")
    s.compute_at("pack", steps)
    s.decompose_reduction("sum", steps)


def _biased_and_packed(s: Schedule) -> None:
    s.fuse_reduction_epilogue("sum", "bias")
    _packed(s)


def _read_behind(s: Schedule) -> None:
    """What reads the result behind it, in a loop that goes over the results, may stay there."""
    _, i, _ = s.get_loops("sum")
    s.reorder(i, s.get_loops("sum")[0])
    s.reverse_compute_at("bias", i)
    s.decompose_reduction("sum", i)


LEGAL: dict[str, tuple[Program, Steps]] = {
    "a panel packed at a step": (FIXED, _packed),
    "an epilogue behind": (FIXED, _read_behind),
    "a difference": (PACKED, lambda s: s.fuse_reduction_epilogue("sum", "bias")),
    "an init with a bias before the steps": (
        FIXED,
        _biased_and_packed,
    ),
}


def test_legal() -> None:
    assert_kept(LEGAL)


def two(first: str, second: str) -> Program:
    return Program(
        "a: f32[Buffer, 4, 6], b: f32[Buffer, 4], c: f32[Buffer, 4], d: f32[Buffer, 4]",
        f"""
for i in range(4):
{first}
    for k in range(6):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", i, k)
            with T.init():
                c[vi] = b[vi]
            c[vi] += a[vi, vk]
{second}
""",
    )


def block(name: str, store: str) -> str:
    return f"""
    with T.block("{name}"):
        vi = T.axis.spatial(4, i)
        {store}
"""


REFUSED: dict[str, tuple[Program, Steps, str]] = {
    "a store before": (
        two("    c[i] = 5.0", ""),
        lambda s: s.decompose_reduction("sum", s.get_loops("sum")[0]),
        "decompose_reduction, argument 2 'loop': a Store in it stands outside any block",
    ),
    "what the init takes": (
        two(block("p", "b[vi] = 1.0"), ""),
        lambda s: s.decompose_reduction("sum", s.get_loops("sum")[0]),
        "decompose_reduction, argument 2 'loop': block 'p' stores to 'b' in it, too",
    ),
    "what is there before": (
        two(block("p", "d[vi] = c[vi]"), ""),
        lambda s: s.decompose_reduction("sum", s.get_loops("sum")[0]),
        "decompose_reduction, argument 2 'loop': block 'p' may read of 'c' what is not begun yet",
    ),
    "what other iterations begin": (
        two("", block("q", "d[vi] = c[3 - vi]")),
        lambda s: s.decompose_reduction("sum", s.get_loops("sum")[0]),
        "decompose_reduction, argument 2 'loop': block 'q' may read of 'c' what is not begun yet",
    ),
    "no step at all": (
        PACKED,
        _packed,
        "compute_at, argument 1 'block': 'k' may be empty and drives the reduction 'sum'",
    ),
    "another operation": (
        Program(PACKED.params, PACKED.body.replace("s[vi, vj] - c", "s[vi, vj] * c")),
        lambda s: s.fuse_reduction_epilogue("sum", "bias"),
        "fuse_reduction_epilogue, argument 2 'epilogue': it does not join it by the 'add' that "
        "reduces",
    ),
    "another block between": (
        PACKED,
        lambda s: s.fuse_reduction_epilogue("sum", "pack"),
        "fuse_reduction_epilogue, argument 2 'epilogue': 'pack' does not join something to what "
        "is reduced",
    ),
    "an epilogue that is read": (
        Program(
            PACKED.params.replace("n", "8"),
            PACKED.body.replace("n,", "8,").replace("- c[vi, vj]", "- d[vi, vj]"),
        ),
        lambda s: s.fuse_reduction_epilogue("sum", "bias"),
        "fuse_reduction_epilogue, argument 2 'epilogue': what it joins depends on what is "
        "reduced, or stored",
    ),
    "two that read it": (
        Program(
            "a: f32[Buffer, 4, 6], b: f32[Buffer, 4], c: f32[Buffer, 4]",
            """
t = T.alloc((4,), "float32")
for i, k in T.grid(4, 6):
    with T.block("sum"):
        vi, vk = T.axis.remap("SR", i, k)
        with T.init():
            t[vi] = 0.0
        t[vi] += a[vi, vk]
for i in range(4):
    with T.block("p"):
        vi = T.axis.spatial(4, i)
        c[vi] = t[vi] + 1.0
    with T.block("q"):
        vi = T.axis.spatial(4, i)
        b[vi] = t[vi] * 2.0
""",
        ),
        lambda s: s.fuse_reduction_epilogue("sum", "p"),
        "fuse_reduction_epilogue, argument 2 'epilogue': others read 't', too",
    ),
    "a source made later": (
        Program(
            "a: f32[Buffer, 8], c: f32[Buffer, 8]",
            """
t = T.alloc((8,), "float32")
b = T.alloc((8,), "float32")
for i in range(8):
    with T.block("x"):
        vi = T.axis.spatial(8, i)
        b[vi] = a[vi] * 3.0
    with T.block("p"):
        vi = T.axis.spatial(8, i)
        t[vi] = a[vi] + 1.0
for i in range(8):
    with T.block("q"):
        vi = T.axis.spatial(8, i)
        c[vi] = t[vi] + b[7 - vi]
""",
        ),
        lambda s: s.reverse_compute_inline("q"),
        "reverse_compute_inline, argument 1 'block': 'b' is not complete where it would be read",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    assert_refused(*REFUSED[name])
