"""``python -m tests.bench.lone``: operators alone, of fixed sizes and with one axis unknown.

Each model of `LONE` runs by Unity, onnxruntime and openvino in turns in one process, a process for
each number of threads. Printed are the ratio of the best peer's least time to ours (above 1: ours
is faster) for fixed sizes and with one unknown axis, and the geometric means. ``lone.json`` keeps
the rows; those that were not measured this time stay.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import unity
from tests.bench.machine import machine
from tests.bench.peers import PEERS, relative_error
from tests.bench.timing import Run, interleaved

from .shapes import LONE, Lone

RESULTS = Path(__file__).with_name("lone.json")
OTHERS = ("onnxruntime", "openvino")
"""Those of `PEERS` that are asked."""
FORMS = {True: "fixed", False: "unknown"}
Row = dict[str, Any]


def measured(lone: Lone, known: bool, threads: int, seconds: float) -> Row:
    """Least microseconds of each, the ratio, the error, and seconds to compile."""
    feeds = lone.feeds()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lone.onnx"
        onnx.save_model(lone.model(known), str(path))
        begin = time.process_time()
        executable = unity.compile(str(path), threads=threads, cache=None)
        spent = time.process_time() - begin
        runs: dict[str, Run] = {"unity": partial(executable.run, feeds)}
        for peer in (p for p in OTHERS if PEERS[p].installed):
            try:
                runs[peer] = partial(PEERS[peer].load(path, threads, feeds), feeds)
                runs[peer]()
            except Exception:  # what a peer refuses, it doesn't take part in
                del runs[peer]
        wanted = runs["onnxruntime"]()
        error = max(
            relative_error(got, want)
            for got, want in zip(runs["unity"]().values(), wanted, strict=True)
        )
        least = {k: t.min for k, t in interleaved(runs, seconds).items()}
    best = min((k for k in least if k in OTHERS), key=least.__getitem__)
    return {
        "work": lone.name,
        "form": FORMS[known],
        "threads": threads,
        "ratio": round(least[best] / least["unity"], 3),
        "best": best,
        "us": {k: round(v * 1e6, 2) for k, v in least.items()},
        "error": float(f"{error:.1g}"),
        "compile_s": round(spent, 2),
    }


def line(row: Row) -> str:
    """A row of the table."""
    times = "  ".join(f"{k} {v:.1f}" for k, v in row["us"].items())
    at = f"{row['work']:44} {row['form']:7} {row['threads']}"
    return f"{at}  {row['ratio']:6.3f}  us: {times}  compile {row['compile_s']} s  {row['error']}"


def summary(rows: list[Row]) -> list[str]:
    """For each form and number of threads the geometric mean, the median, and the worst."""
    found: list[str] = []
    for form, threads in sorted({(r["form"], r["threads"]) for r in rows}):
        group = [r for r in rows if (r["form"], r["threads"]) == (form, threads)]
        ratios = np.array([r["ratio"] for r in group])
        worst = sorted(group, key=lambda r: float(r["ratio"]))[:5]
        found.append(
            f"{form}, {threads} threads: {len(group)} works, geometric mean "
            f"{np.exp(np.log(ratios).mean()):.3f}, median {np.median(ratios):.3f}; worst: "
            + ", ".join(f"{r['work']} {r['ratio']:.2f}" for r in worst)
        )
    return found


def merged(earlier: list[Row], rows: list[Row]) -> list[Row]:
    """The rows of the file with those measured now in their places."""
    by_key = {(r["work"], r["form"], r["threads"]): r for r in [*earlier, *rows]}
    order = {name: k for k, name in enumerate(LONE)}
    kept = (k for k in by_key if k[0] in order)
    return [by_key[k] for k in sorted(kept, key=lambda k: (k[2], k[1], order[k[0]]))]


def _child(options: argparse.Namespace, names: list[str]) -> None:
    for name in names:
        for known in (True, False):
            if FORMS[known] in options.forms:
                row = measured(LONE[name], known, options.threads[0], options.seconds)
                print(json.dumps(row), flush=True)


def main() -> None:
    """Measure what the command line names; everything by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("works", nargs="*", help="parts of their names; all if none is given")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument(
        "--forms", nargs="*", choices=list(FORMS.values()), default=["fixed", "unknown"]
    )
    parser.add_argument("--seconds", type=float, default=0.5, help="for each row")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = [n for n in LONE if not options.works or any(w in n for w in options.works)]
    if not names:
        parser.error(f"nothing is called {' or '.join(options.works)}")
    if options.child:
        _child(options, names)
        return
    earlier: Row = json.loads(options.output.read_text()) if options.output.exists() else {}
    if earlier.get("machine", machine()) != machine():
        parser.error(f"{options.output} is of {earlier['machine']}, this is {machine()}: --output")
    rows: list[Row] = []
    for threads in options.threads:
        command = [sys.executable, "-m", "tests.bench.lone", "--child", "--threads", str(threads)]
        command += ["--seconds", str(options.seconds), "--forms", *options.forms, "--", *names]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for text in child.stdout:
                rows.append(json.loads(text))
                print(line(rows[-1]), flush=True)
        if child.returncode:
            print(f"the process of {threads} threads ended with {child.returncode}")
    kept = merged(earlier.get("rows", []), rows)
    print("\n".join(summary(rows)))
    found = {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "rows": kept}
    options.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
