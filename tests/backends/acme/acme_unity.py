"""A package that adds the target ``acme``: this machine, with everything of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unity import IRModule, Target, te
from unity.codegen.engine import InterpreterEngine, register_engine
from unity.codegen.llvm import host_target
from unity.ir.attrs import Attrs
from unity.ir.types import Type
from unity.op.registry import ComputeArg
from unity.transform import (
    Backend,
    Context,
    MemoryScope,
    Pass,
    Pipeline,
    Precision,
    standard_pipeline,
)
from unity.transform.graph import Legalization, SimplifyOps
from unity.transform.schedule import Schedule


def detect(threads: int | None) -> Target:
    """This machine under another name, with a memory of its own."""
    return replace(host_target(threads), kind="acme", scopes=(MemoryScope("acme.sram", 4096),))


def hard_silu(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    """``x * clip(x / 6 + 0.5)`` for silu: other numbers, so that a test sees whose kernel it is."""
    (x,) = args
    assert isinstance(x, te.Tensor)
    return te.compute(
        x.shape, lambda *i: x[i] * te.clamp(x[i] / 6.0 + 0.5, 0.0, 1.0), name="acme_silu"
    )


def in_sixteens(schedule: Schedule) -> bool:
    """Elementwise kernels of one block: strips of 16 lanes along the last axis."""
    blocks = schedule.get_blocks()
    if len(blocks) != 1 or set(schedule.axis_kinds(blocks[0])) != {"S"}:
        return False
    *outer, last = schedule.get_loops(blocks[0])
    strips, lanes = schedule.split(last, [None, 16])
    schedule.vectorize(lanes)
    schedule.parallel(outer[0] if outer else strips)
    return True


@dataclass(frozen=True, slots=True)
class Inspect(Pass):
    """Notes that it ran."""

    note: str = "ran"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """The module as it is."""
        ctx.reports["acme"] = f"{self.note} for {ctx.target.kind}"
        return module


def pipeline(backend: Backend, precision: Precision) -> Pipeline:
    """The standard one and a look at it."""
    return standard_pipeline(backend, precision).insert_after(SimplifyOps, Inspect("looked"))


def register() -> None:
    """The vendor's runtime."""
    register_engine(InterpreterEngine("acme"))


ACME = Backend(
    name="acme",
    detect=detect,
    pipeline=pipeline,
    legalizations=(Legalization("nn.silu", hard_silu),),
    schedule_rules=(in_sixteens,),
    efficiency={"tir": {"contraction": 0.01}, "engine:acme": {"contraction": 0.9}},
    implementations=("engine:acme",),
    resolve={"nn.softmax": "engine:acme"},
    register=register,
)
