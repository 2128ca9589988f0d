"""How much memory a runtime takes for a model: each in a process of its own.

What a run takes (``run_mib``) is how far the resident set rises, in three runs at most, above what
it is with the model loaded: intermediate values, results, and temporaries of kernels, whoever
allocates them. So that a run can't hide in what loading left behind, the allocator gives back what
is free before the first run, and ONNX Runtime keeps its weights out of its arena
(``session.use_device_allocator_for_initializers``), where freed copies of them would be used again.
Pages are 4 KiB, and what was never touched does not count.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path

from .work import Feeds, Work

MIB = 2**20
Loader = Callable[[Path, Feeds, Work], Callable[[], object]]


def measured(path: Path, work: str, length: int, runtime: str) -> dict[str, float]:
    """MiB that a runtime takes for a model, and a run above that (see `_report`)."""
    command = [sys.executable, "-m", "tests.bench.memory", str(path), work, str(length), runtime]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def unity(path: Path, feeds: Feeds, work: Work) -> Callable[[], object]:
    """Unity as it is used by default, in a session where the work has one."""
    if work.session:
        from .session import InSession

        kept = InSession(path, 1, {})
        kept.begin(feeds)
        return kept
    from unity import compiler

    return partial(compiler.compile(str(path), threads=1).run, feeds)


def onnxruntime(path: Path, feeds: Feeds, work: Work, arena: bool = True) -> Callable[[], object]:
    """ONNX Runtime; with its arena and memory pattern, its default, or without either."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_cpu_mem_arena = options.enable_mem_pattern = arena
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return partial(session.run, None, feeds)


RUNTIMES: Mapping[str, tuple[str, Loader]] = {
    "unity": ("unity.compiler", unity),
    "onnxruntime": ("onnxruntime", onnxruntime),
    "onnxruntime_no_arena": ("onnxruntime", partial(onnxruntime, arena=False)),
}
"""The package that counts as there before anything is loaded, and how a model is loaded."""


def _status(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / MIB
    raise AssertionError(field)


def _report(path: Path, feeds: Feeds, work: Work, runtime: str) -> dict[str, float]:
    """MiB above what the process takes with the package imported: ``loaded_mib`` with the model
    loaded, ``load_peak_mib`` while loading; above the former ``run_mib`` in the first of three
    runs and ``runs_mib`` in all."""
    package, load = RUNTIMES[runtime]
    import_module(package)
    empty = _status("VmRSS")
    run = load(path, feeds, work)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    loaded, load_peak = _status("VmRSS"), _status("VmHWM")
    rises: list[float] = []
    for _ in range(3):
        Path("/proc/self/clear_refs").write_text("5")  # starts VmHWM anew
        result = run()
        rises.append(_status("VmHWM") - loaded)
        del result
    return {
        "loaded_mib": round(loaded - empty, 1),
        "load_peak_mib": round(load_peak - empty, 1),
        "run_mib": round(rises[0], 1),
        "runs_mib": round(max(rises), 1),
    }


def main() -> None:
    """What `measured` starts."""
    from .works import WORKS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("work", choices=list(WORKS))
    parser.add_argument("length", type=int)
    parser.add_argument("runtime", choices=list(RUNTIMES))
    options = parser.parse_args()
    work = WORKS[options.work]
    found = _report(options.path, work.feeds(options.length), work, options.runtime)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
