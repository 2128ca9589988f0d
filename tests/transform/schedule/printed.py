"""Schedules printed as programs, and run."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.attrs import Attrs
from unity.ir.equality import first_difference
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.transform import Context
from unity.transform.schedule import Schedule
from unity.transform.tensor import LowerBlocks, SimplifyTir


def run_printed(sch: Schedule, name: str = "kernel") -> Schedule:
    """The schedule that its printed program makes."""
    scope: dict[str, object] = {"print": lambda *_: None}
    exec(sch.to_python(name), scope)
    made = scope["schedule"]
    assert isinstance(made, Schedule)
    return made


def difference(a: PrimFunc, b: PrimFunc) -> str | None:
    """Where two kernels differ in what they do: as loops, whatever their blocks are called.

    Steps name what they make after buffers, which a text calls otherwise where names are taken.
    """
    return first_difference(_as_loops(a), _as_loops(b))


def _as_loops(func: PrimFunc) -> PrimFunc:
    module, ctx = IRModule({"main": replace(func, attrs=Attrs())}), Context()
    return SimplifyTir()(LowerBlocks()(module, ctx), ctx).prim_funcs()["main"]
