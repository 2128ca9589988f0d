"""How much memory a runtime takes for a model: each in a process of its own."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import unity

from .peers import onnxruntime
from .work import Feeds

MIB = 2**20


def measured(path: Path, works: str, length: int, runtime: str) -> dict[str, float]:
    """MiB resident with the model loaded and run once, and how far a run rises above that."""
    command = [sys.executable, "-m", "tests.bench.memory", str(path), works, str(length), runtime]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _status(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / MIB
    raise AssertionError(field)


def _report(path: Path, feeds: Feeds, runtime: str) -> dict[str, float]:
    empty = _status("VmRSS")
    if runtime == "unity":
        executable = unity.compile(str(path), threads=1)

        def run() -> object:
            return executable.run(feeds)
    else:
        session = onnxruntime(path, 1, feeds)

        def run() -> object:
            return session(feeds)

    loaded = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # starts VmHWM anew
    for _ in range(3):
        run()
    return {
        "loaded_mib": round(loaded - empty, 1),
        "run_mib": round(_status("VmHWM") - loaded, 1),
        "peak_mib": round(_status("VmHWM") - empty, 1),
    }


def main() -> None:
    """What `measured` starts."""
    from .works import WORKS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("work")
    parser.add_argument("length", type=int)
    parser.add_argument("runtime", choices=["unity", "onnxruntime"])
    options = parser.parse_args()
    feeds = WORKS[options.work].feeds(options.length)
    print(json.dumps(_report(options.path, feeds, options.runtime)))


if __name__ == "__main__":
    main()
