"""Tutorial 6: change the pipeline, and give a machine one of its own.

Run it: ``python tutorials/06_customize_the_pipeline.py``. The machine is this one under another
name, which stands for a vendor's: with its own kernel for an operator, its own way to lay out
loops, its own pass. The end shows how a package brings all of that by being installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import unity
import unity.demo
from unity import te
from unity.ir.attrs import Attrs
from unity.ir.types import Type
from unity.machine.machine import Machine
from unity.op.registry import ComputeArg
from unity.script import parse
from unity.transform import (
    Backend,
    Context,
    MemoryScope,
    Pass,
    Pipeline,
    Precision,
    backend_of,
    register_backend,
    standard_pipeline,
)
from unity.transform.blocks.extents import product
from unity.transform.blocks.nest import nest_of
from unity.transform.graph import (
    ConvertLayout,
    ConvertWinograd,
    EliminateDeadCode,
    Legalization,
    LegalizeOps,
    PlanMemory,
    SimplifyOps,
)
from unity.transform.instruments import Timing
from unity.transform.schedule import (
    AppliedRule,
    Schedule,
    ScheduleByRule,
    ScheduleDefault,
    default_rules,
    default_schedule,
)
from unity.transform.tactics.threads import share

path = Path(unity.demo.__file__).parent / "digits.onnx"
with np.load(path.with_suffix(".npz")) as held_out:
    images = held_out["images"]
scores = unity.compile(path)(images)


def check(executable: unity.Executable) -> None:
    """It computes what it did before."""
    np.testing.assert_allclose(executable(images), scores, rtol=1e-4, atol=1e-4)


# %% A pipeline is data. Printed, it is the Python that makes it: paste it, change it, run it.
passes = unity.pipeline("cpu")
print(passes)
again: dict[str, Pipeline] = {}
exec(str(passes), again)
assert again["pipeline"] == passes

# %% Or edit it. Passes are named by their class, and nothing is changed in place.
plain = passes.without(ConvertLayout, ConvertWinograd)
careful = passes.replace(PlanMemory, PlanMemory(in_place=False))
check(unity.compile(path, pipeline=plain))
check(unity.compile(path, pipeline=careful))
try:
    plain.without(ConvertWinograd)
except unity.UnityError as error:
    print(error)  # and what there is


# %% A pass is a frozen dataclass that is called with a module. This one counts.
@dataclass(frozen=True, slots=True)
class CountBindings(Pass):
    """Reports how long the program is."""

    label: str

    def __call__(self, module: unity.IRModule, ctx: Context) -> unity.IRModule:
        blocks = [b for f in module.graph_functions().values() for b in f.body.blocks]
        ctx.reports[self.label] = f"{sum(len(b.bindings) for b in blocks)} bindings"
        return module


counted = passes.insert_before(SimplifyOps, CountBindings("first"))
counted = counted.insert_after(EliminateDeadCode, CountBindings("last"))
context = Context(backend_of("cpu").machine())
counted.run(unity.load(path), context)
print(context.reports["first"], "->", context.reports["last"])


# %% An operator's kernel can be another one. A rule is given tensors and gives an expression of
# their elements, or None to leave the operator its own.
def clipped(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor | None:
    """Relu as a clip of both sides, which some machines have as one instruction."""
    (x,) = args
    if not isinstance(x, te.Tensor):
        return None
    return te.compute(x.shape, lambda *i: te.clamp(x[i], 0.0, 1e30), name="clipped")


relu = Legalization("nn.relu", clipped)
executable = unity.compile(path, pipeline=plain.replace(LegalizeOps, LegalizeOps((relu,))))
check(executable)


# %% So can the way its loops are laid out. A rule takes the steps of tutorial 3 on any kernel, and
# says whether it has laid it out. What it declines goes to the rules that come with Unity.
def in_strips(schedule: Schedule) -> bool:
    """Kernels of one block without sums: strips of 8 along the last axis."""
    blocks = schedule.get_blocks()
    if len(blocks) != 1 or set(schedule.axis_kinds(blocks[0])) != {"S"}:
        return False
    *outer, last = schedule.get_loops(blocks[0])
    strips, lanes = schedule.split(last, [None, 8])
    schedule.vectorize(lanes)
    schedule.parallel(outer[0] if outer else strips)
    return True


program = parse("""
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 30]) -> f32[Tensor, n, 30]:
    return R.nn.relu(R.exp(x))
""")
striped = passes.insert_before(ScheduleDefault, ScheduleByRule((in_strips,)))
laid_out = striped.until(PlanMemory).run(program, context)
print(laid_out)
assert "T.vectorized(8)" in str(laid_out)
check(unity.compile(path, pipeline=striped))


# %% Rules are short where they are made of ours: of tactics, here the one that gives loops to
# threads where their work repays waking them; or of whole rules of ours, with other decisions.
def in_shared_strips(schedule: Schedule) -> bool:
    """Strips of 8 on as many threads as the machine's numbers say."""
    stage = nest_of(schedule.func.body)
    if stage is None or stage.reduction is not None or len(stage.axes) < 2:
        return False
    *rows, last = schedule.get_loops(stage.name)
    schedule.vectorize(schedule.split(last, [None, 8])[1])
    points = product([axis.extent for axis in stage.axes[:-1]])
    share(schedule, rows, points, stage.axes[-1].extent, "elements")
    return True


def narrow_softmax(schedule: Schedule) -> bool:
    """Softmax and what else goes row by row: by our rule, a vector at a time."""
    assert schedule.target is not None
    (rule, *others) = default_rules(schedule.func, schedule.target)
    if rule.rule == "rows" and not others:
        narrow = default_schedule(schedule.func, schedule.target, {rule.blocks[0]: {"vectors": 1}})
        schedule.replay(narrow.trace)
    return rule.rule == "rows" and not others


# %% Who wants all our rules, but other numbers, changes decisions as they are taken ...
def shallow(rule: AppliedRule, target: unity.Target) -> dict[str, int]:
    """Half of the rows that our register tiles have."""
    legal = rule.legal.get("rows")
    fewer = rule.decisions.get("rows", 0) // 2
    return {"rows": fewer} if legal is not None and fewer in legal.values else {}


# %% ... or tells what they are taken by: threads that are slow to wake, and memories of its own,
# which steps and kernels may then name, `schedule.cache_read("matmul", 1, "tutorial.pad")`.
cpu = backend_of("cpu")


def detect(threads: int | None) -> unity.Target:
    """This machine by another name, with other numbers. A cross compiler would describe one."""
    here = cpu.machine(threads)
    pad = MemoryScope("tutorial.pad", 1 << 16)
    return replace(here, kind="tutorial", machine=Machine(wake_cycles=9000), scopes=(pad,))


# %% All of it together is a backend: a name, the machine that it means, and what it does its way.
# `pipeline` may be anything; here it is the standard one, which applies the rules, and our pass.


def pipeline(backend: Backend, precision: Precision) -> Pipeline:
    """The standard passes and a count."""
    standard = standard_pipeline(backend, precision)
    return standard.insert_after(EliminateDeadCode, CountBindings("last"))


TUTORIAL = Backend(
    name="tutorial",
    detect=detect,
    pipeline=pipeline,
    legalizations=(relu,),
    schedule_rules=(in_shared_strips, narrow_softmax),
    decide=shallow,
    efficiency={"tir": {"contraction": 0.5}, "library:openblas": {"contraction": 0.9}},
    implementations=("library:*",),  # what calls may be resolved to besides our kernels
    resolve="static",  # and what decides, where the user says nothing
)
register_backend(TUTORIAL)
timing = Timing()
executable = unity.compile(path, "tutorial", instruments=[timing])
check(executable)
print(timing)
print(executable.explain())
assert "CountBindings" in timing.calls
assert "ScheduleByRule" in timing.calls
ours = unity.compile(path)
for kernel in sorted({*executable.kernels} & {*ours.kernels}):
    try:
        print(kernel, *ours.rules(kernel), "->", *executable.rules(kernel), sep="\n    ")
    except unity.UnityError as error:
        print(error)  # by a rule of the backend's
softmax = parse("""
@script.function
def main(x: f32[Tensor, 40, 96]) -> f32[Tensor, 40, 96]:
    return R.nn.softmax(x)
""")
x = np.random.default_rng(0).standard_normal((40, 96), np.float32)
narrow = unity.compile(softmax, "tutorial")
np.testing.assert_allclose(narrow(x), unity.compile(softmax)(x), rtol=1e-5)

# %% The same for everybody who installs a package of yours: put the backend into it, name it in its
# pyproject.toml, and `unity.compile(model, "tutorial")` loads it when it is asked for.
print("""
[project.entry-points."unity.backends"]
tutorial = "your_package.backend:TUTORIAL"
""")
