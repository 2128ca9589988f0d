"""Records of a log that pay here: tried on this machine, and remembered in the tuning database.

What was best for TVM's code need not be for ours, so no time of a log is taken over. The program is
compiled with the log's tile sizes and without; kernel by kernel the faster ones stay, and the whole
is timed against what it is without them. What was found is a decision of the database that
``resolve="measure"`` keeps its own in: the next time nothing is measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from logging import getLogger
from pathlib import Path

import unity
from unity.codegen.llvm import default_folder
from unity.codegen.llvm.host import host_target
from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.runtime.bytecode import CallKernel
from unity.runtime.executable import Executable
from unity.runtime.vm import Event
from unity.transform import Context
from unity.transform.schedule import ScheduleDefault
from unity.tuning import Database
from unity.tuning.database import key_of
from unity.tuning.race import interleaved
from unity.tuning.timing import inputs_for, sizes_for
from unity.tuning.versions import versions

from .candidates import applied, candidate
from .records import Record, best

log = getLogger("unity")
MARGIN = 0.97
"""A kernel's tile sizes stay if it takes at most this share of what it takes without them."""
_RUNS = 6


def measured(
    module: IRModule,
    records: Sequence[Record],
    target: Target | None = None,
    *,
    cache: Path | str | None = "default",
) -> tuple[Record, ...]:
    """The records whose tile sizes make a program faster on this machine.

    ``unity.compile(module, pipeline=applied(measured(module, records)))`` compiles with them. Those
    that say nothing of the program, or nothing legal, are told by the logger ``unity``.

    Args:
        module: The program.
        records: Those of a log, `read_log`.
        target: What it is compiled for, which this machine must run; this machine if not given.
        cache: Where the database lies, as for `unity.compile`.

    Raises:
        UnityError: A size of the program's inputs is unknown in a way that no array can be made.
    """
    machine = target or host_target()
    main = module["main"]
    assert isinstance(main, Function)
    sizes = sizes_for(main, {})
    known = [r for r in best(records) if r.decisions]
    folder = default_folder() if cache == "default" else cache
    database = Database(None if folder is None else Path(folder))
    said = json.dumps([[r.task, r.decisions] for r in known])
    named = sorted((s.name, n) for s, n in sizes.items())
    key = key_of(module, f"tile sizes of a log: {said}", machine, named, versions())
    before = database.decision(key)
    if before is not None:
        tasks = set(json.loads(before))
        return tuple(r for r in known if r.task in tasks)
    inputs = inputs_for(main, sizes)
    kept = _paying(module, known, machine, inputs)
    database.decide(key, json.dumps([r.task for r in kept]), f"{len(kept)} records of a log pay")
    return kept


def _paying(
    module: IRModule, records: Sequence[Record], target: Target, inputs: Sequence[object]
) -> tuple[Record, ...]:
    of = _kernels(module, records, target)
    for record in records:
        if record.task not in of.values():
            log.warning("%s: no kernel computes it here, or none of it is legal", record.task)
    if not of:
        return ()
    usual = unity.compile(module, target)
    tried = unity.compile(module, target, pipeline=applied(records))
    old, new = (_seconds(exe, inputs) for exe in (usual, tried))
    took: dict[str, list[float]] = {}
    for kernel, task in of.items():
        sums = took.setdefault(task, [0.0, 0.0])
        sums[0] += old.get(kernel, 0.0)
        sums[1] += new.get(kernel, 0.0)
    kept = tuple(r for r in records if r.task in took and _pays(*took[r.task]))
    for task, (a, b) in took.items():
        log.info("%s: %.1f us, with the log's tile sizes %.1f us", task, a * 1e6, b * 1e6)
    if not kept:
        return ()
    if len(kept) < len(took):
        tried = unity.compile(module, target, pipeline=applied(kept))
    whole = interleaved([usual, tried], inputs)
    return kept if whole[1] <= whole[0] else ()


def _pays(before: float, after: float) -> bool:
    return 0 < after <= MARGIN * before


def _kernels(module: IRModule, records: Sequence[Record], target: Target) -> Mapping[str, str]:
    """For each kernel that a record says something legal of, the record's task."""
    context = Context(target)
    kernels = unity.pipeline("cpu").until(ScheduleDefault).run(module, context).prim_funcs()
    found = {name: candidate(records, func, target) for name, func in kernels.items()}
    return {n: c.record.task for n, c in found.items() if c is not None and c.decisions}


def _seconds(executable: Executable, inputs: Sequence[object]) -> Mapping[str, float]:
    """What each kernel takes within the whole, all its calls together; the fastest run of some."""
    found: dict[str, float] = {}
    for run in range(_RUNS):
        events: list[Event] = []
        executable.trace(events.append, *inputs)
        once: dict[str, float] = {}
        for event in events:
            if isinstance(event.instruction, CallKernel):
                name = executable.kernels[event.instruction.kernel]
                once[name] = once.get(name, 0.0) + event.seconds
        if run:  # the first one warms up
            found = {n: min(found.get(n, s), s) for n, s in once.items()}
    return found
