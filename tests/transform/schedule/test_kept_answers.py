"""What was found out of a loop is not asked again after steps elsewhere, and is after its own."""

from __future__ import annotations

import pytest

from unity.ir.stmt import For
from unity.script import parse
from unity.transform.blocks import dependence
from unity.transform.blocks.tree import Path, known_at, loop_path
from unity.transform.schedule import Schedule

TEXT = """
@script.prim_func
def main(a: f32[Buffer, 8, 16], b: f32[Buffer, 8, 16], c: f32[Buffer, 8]) -> None:
    for i, j in T.grid(8, 16):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", i, j)
            b[vi, vj] = a[vi, vj] * 2.0
    for i, k in T.grid(8, 16):
        with T.block("second"):
            vi, vk = T.axis.remap("SR", i, k)
            with T.init():
                c[vi] = 0.0
            c[vi] += b[vi, vk]
"""


def test_steps_elsewhere_ask_nothing_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    usual = dependence._need_order

    def noted(loop: For, path: Path, *, joined: bool) -> str | None:
        asked.append(loop.var.name)
        return usual(loop, path, joined=joined)

    monkeypatch.setattr(dependence, "_need_order", noted)
    sch = Schedule(parse(TEXT).prim_funcs()["main"])
    i, _ = sch.get_loops("first")
    sch.parallel(i)
    sch.cache_write("second", 0, "global")
    assert asked == ["i"]
    sch.cache_write("first", 0, "local")
    assert asked == ["i", "i"]


def test_what_is_known_of_variables_outlives_steps_in_their_loops() -> None:
    sch = Schedule(parse(TEXT).prim_funcs()["main"])
    var = sch._var(sch.get_loops("second")[0])
    before = known_at(loop_path(sch.func, var)[0])
    sch.cache_write("second", 0, "global")
    sch.decompose_reduction("second", sch.get_loops("second")[0])
    path, loop = loop_path(sch.func, var)
    assert known_at(path) is before
    assert known_at(path[:-1]) is not before
    assert loop.var is var
