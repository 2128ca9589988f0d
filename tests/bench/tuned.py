"""``python -m tests.bench.tuned``: a whole model tuned for some minutes, by us and by MetaSchedule.

Both have the same wall time on the same machine. Then our default and our tuned program and
onnxruntime take turns in one process, at real-time priority where the system allows it; ours are
instantiated three times each, since where memory comes to lie makes some percent. `gain` is by
turns (`Times.by_turns`; before 2026-11-29 it was of lower quartiles); `noise` tells how far the
three default programs, which are equal, are apart by them. TVM's tuned program then takes turns
with ours. MetaSchedule is tuned as TVM's own pipeline for cpus does it, with weights laid out
ahead; it needs ``apache-tvm`` with ``apache-tvm-ffi==0.1.14.post0`` and ``xgboost-cpu``, is left
out where they are missing, and is compared where it kept a trial at all. Rows go to ``tuned.json``,
those of each machine; ``seconds`` is 0 where only what was found before was compared (``--seconds 0
--folder``).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import onnx

import unity
from unity.codegen.llvm import host_target
from unity.errors import UnityError
from unity.tuning.clock import before_others
from unity.tuning.records import Records

from .machine import machine
from .peers import PEERS, RunWith, relative_error
from .timing import Run, Times, interleaved
from .work import Feeds
from .works import WORKS

RESULTS = Path(__file__).with_name("tuned.json")
_WEIGHTS = "main_transform_params"
"""What TVM calls the function that lays weights out."""
_FIRST_BUILD = 300.0
"""Seconds that TVM may take to build a candidate: 90 of cpu for whatever a process builds first."""
_INSTANCES, _SECONDS = 3, 60.0
"""How many programs of each kind of ours take turns, and for how long all together."""
_NEVER = 1_000_000
"""Trials that are never reached: MetaSchedule has no limit of time."""


def lowered(path: Path, threads: int) -> tuple[Any, Any, Any]:
    """TVM's module of a model ready to be tuned, its weights, and the target."""
    tvm: Any = import_module("tvm")
    relax: Any = import_module("tvm.relax")
    frontend: Any = import_module("tvm.relax.frontend")
    from_onnx: Any = import_module("tvm.relax.frontend.onnx").from_onnx
    cpu = host_target().cpu
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": threads})
    module, params = frontend.detach_params(
        from_onnx(onnx.load(path), {}, keep_params_in_input=True)
    )
    passes = [
        relax.transform.DecomposeOpsForInference(),
        relax.transform.CanonicalizeBindings(),
        relax.get_pipeline("zero"),
        relax.transform.AttachAttrLayoutFreeBuffers(),
    ]
    with target:
        return tvm.transform.Sequential(passes)(module), params["main"], target


def search(path: Path, threads: int, folder: Path) -> None:
    """Tune by MetaSchedule until someone ends the process; its database is in the folder."""
    schedule: Any = import_module("tvm.s_tir.meta_schedule")
    module, _, target = lowered(path, threads)
    builder = schedule.builder.LocalBuilder(max_workers=threads, timeout_sec=_FIRST_BUILD)
    schedule.relax_integration.tune_relax(
        module, {}, target, str(folder), _NEVER, num_trials_per_iter=16, builder=builder
    )


def metaschedule(path: Path, threads: int, folder: Path) -> RunWith:
    """What MetaSchedule's database makes of a model."""
    os.environ["TVM_NUM_THREADS"] = str(threads)
    tvm: Any = import_module("tvm")
    relax: Any = import_module("tvm.relax")
    module, params, target = lowered(path, threads)
    with target:
        passes = [
            relax.transform.MetaScheduleApplyDatabase(str(folder)),
            relax.transform.SplitLayoutRewritePreproc(),
            relax.transform.LiftTransformParams(),
            relax.transform.FoldConstant(),
        ]
        built = tvm.compile(tvm.transform.Sequential(passes)(module), target=target)
    vm = relax.VirtualMachine(built, tvm.cpu())
    weights = vm[_WEIGHTS](params)

    def run(feeds: Feeds) -> list[Any]:
        result = vm["main"](*map(tvm.runtime.tensor, feeds.values()), *weights)
        return [result.numpy() if hasattr(result, "numpy") else result[0].numpy()]

    return run


def searched(path: Path, threads: int, seconds: float, folder: Path) -> int:
    """Have MetaSchedule search for some time in a process of its own; how many trials it made."""
    command = [sys.executable, "-m", "tests.bench.tuned", "--search", str(path)]
    command += ["--threads", str(threads), "--folder", str(folder)]
    log = folder / "search.log"
    with log.open("w") as out:
        child = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        else:
            raise UnityError(f"MetaSchedule ended by itself: {log.read_text()[-2000:]}")
    records = folder / "database_tuning_record.json"
    made = len(records.read_text().splitlines()) if records.exists() else 0
    if not made:
        print(f"MetaSchedule made no trial: {log.read_text()[-2000:]}", flush=True)
    return made


def row(name: str, threads: int, seconds: float, *, tvm: bool, folder: Path) -> dict[str, Any]:
    """What tuning a model for so long gives; for no time, what the folder's records give."""
    work = WORKS[name]
    path, records = folder / f"{name}.onnx", folder / "tuned.jsonl"
    onnx.save(work.build(), path)
    feeds = work.feeds(work.lengths[0])
    begin = time.monotonic()
    if seconds:
        unity.tune(path, threads=threads, seconds=seconds, db=records)
    took, known = time.monotonic() - begin, Records(records)
    made: dict[str, Any] = {
        "work": name,
        "threads": threads,
        "seconds": round(took),
        "trials": len(known.trials()),
        "kernels": {b.about: round(1 / b.ratio, 3) for b in known.bests()},
    }
    if tvm:
        made["metaschedule_trials"] = searched(path, threads, seconds, folder)
    programs = {
        label: [unity.compile(path, threads=threads, db=db) for _ in range(_INSTANCES)]
        for label, db in (("default", None), ("tuned", records))
    }
    before_others()  # threads that programs start when they first run inherit it
    want = next(iter(programs["default"][0].run(feeds).values()))
    made["error"] = relative_error(next(iter(programs["tuned"][0].run(feeds).values())), want)
    runs: dict[str, Run] = {}
    for k in range(_INSTANCES):
        for label, instances in programs.items():
            runs[f"{label} {k}"] = partial(instances[k].run, feeds)
    if PEERS["onnxruntime"].installed:
        runs["onnxruntime"] = partial(PEERS["onnxruntime"].load(path, threads, feeds), feeds)
    made |= compared(interleaved(runs, _SECONDS))
    if made.get("metaschedule_trials"):  # else it would be TVM's default
        run = metaschedule(path, threads, folder)
        made["metaschedule_error"] = relative_error(run(feeds)[0], want)
        both: dict[str, Run] = {"tuned": runs["tuned 0"], "metaschedule": partial(run, feeds)}
        times = interleaved(both, _SECONDS / 2)
        made["metaschedule_ms"] = {n: round(t.by_turns * 1e3, 3) for n, t in times.items()}
        made["ahead_of_metaschedule"] = round(
            times["metaschedule"].by_turns / times["tuned"].by_turns, 3
        )
    return made


def compared(times: Mapping[str, Times]) -> dict[str, Any]:
    """How much faster the tuned programs are, and how far equal ones are apart.

    Args:
        times: Of ``default k``, ``tuned k`` and others.
    """

    def of(label: str) -> list[Times]:
        return [t for name, t in times.items() if name.startswith(label)]

    default, tuned = of("default"), of("tuned")
    equal = [t.by_turns for t in default]
    gain = median(equal) / median(t.by_turns for t in tuned)
    median_gain = median(t.median for t in default) / median(t.median for t in tuned)
    return {
        "ms": {name: round(t.by_turns * 1e3, 3) for name, t in times.items()},
        "median_ms": {name: round(t.median * 1e3, 3) for name, t in times.items()},
        "gain": round(gain, 3),
        "median_gain": round(median_gain, 3),
        "noise": round(max(equal) / min(equal) - 1, 3),
    }


def main() -> None:
    """Tune, compare, and keep the row."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.tuned", description=__doc__)
    parser.add_argument("works", nargs="*", default=["resnet18"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=900.0, help="0: compare what is known")
    parser.add_argument("--folder", type=Path, help="where models and records are kept")
    parser.add_argument("--alone", action="store_true", help="leave MetaSchedule out")
    parser.add_argument("--search", type=Path, help="a model that MetaSchedule is to tune")
    args = parser.parse_args()
    if args.search is not None:
        search(args.search, args.threads, args.folder)
        return
    tvm = find_spec("tvm") is not None and not args.alone
    for name in args.works:
        with tempfile.TemporaryDirectory() as made_here:
            folder = args.folder or Path(made_here)
            made = row(name, args.threads, args.seconds, tvm=tvm, folder=folder)
        print(json.dumps(made), flush=True)
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        here = kept.setdefault(machine(), {})
        here[f"{name} x{args.threads}"] = {"date": time.strftime("%Y-%m-%d"), **made}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
