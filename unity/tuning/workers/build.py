"""``python -m unity.tuning.workers.build``: compiles candidates to executables, one file each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from unity.codegen.assemble import assemble
from unity.codegen.lower import lower
from unity.codegen.workers.child import Message
from unity.codegen.workers.described import target_from
from unity.codegen.workers.serve import serve
from unity.collection import no_cycle_collection
from unity.script import parse
from unity.transform import Context, pipeline
from unity.transform.blocks.sound import is_sound
from unity.transform.blocks.trust import trusted
from unity.transform.rules.by_default import ScheduleDefault
from unity.transform.schedule.schedule import Schedule
from unity.transform.schedule.trace import Trace

from ..tasks import at_sizes
from ..tasks.task import KERNEL
from .intrinsics import register


@no_cycle_collection()
def build(request: Message) -> Message:
    """Lay a kernel out by a trace, compile it, save it.

    Args:
        request: ``module`` is its text, ``target`` the machine, ``trace`` the steps (none of those
            a rule would take: the kernel is compiled by default then), ``path`` the file,
            ``sizes`` what its unknown sizes are to be, by name, if they are to be known,
            ``intrinsics`` the tensor intrinsics that the program registered (`registered`).
    """
    register(request["intrinsics"])
    module = parse(str(request["module"]))
    target = target_from(str(request["target"]))
    trace = request.get("trace")
    if trace is not None:
        schedule = Schedule(module.prim_funcs()[KERNEL], target)
        with trusted(is_sound(schedule.func)):  # whoever asks for it has asked of each step
            schedule.replay(Trace.from_json(str(trace)))
        module = module.with_({KERNEL: schedule.kernel()})
    sizes = cast("Mapping[str, int]", request["sizes"])
    if sizes:
        module = at_sizes(ScheduleDefault()(module, Context(target)), sizes)
    lowered = lower(module, pipeline(target.kind), Context(target), None)
    assemble(lowered, "", {}).save(str(request["path"]))
    return {}


if __name__ == "__main__":
    serve({"build": build})
