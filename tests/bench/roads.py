"""``python -m tests.bench.roads``: what measuring chooses, against each single road, whole models.

For each model: compiled with ``resolve="measure"`` (in seconds the first time, and again from the
database), then run in turns with all our kernels, all by a library where there is one, all by each
engine, and with ours without Winograd's tiles; how far each road's numbers are from ours. What a
run waits for a cpu that other processes have is not counted. Where memory comes to lie makes a
program some percent faster or slower, so each is instantiated twice, and the faster counts. Rows
go to ``roads.json``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import onnx

import unity
from unity.errors import UnityError
from unity.runtime.executable import Executable
from unity.tuning.race import interleaved

from .machine import machine
from .peers import relative_error
from .works import WORKS

Row = dict[str, Any]
RESULTS = Path(__file__).with_name("roads.json")
ROADS = ("tir", "library:openblas", "engine:onnxruntime", "engine:openvino")
FORMS = ("tir:direct",)
"""Ways of ours to compare with besides; no roads of their own."""
MEASURED = "measure"
INSTANCES = 2
SIZES: dict[str, dict[int, dict[str, int]]] = {
    "gpt2_decode": {n: {"P": n, "T": 1} for n in (16, 1000)},
    "bert_base_dynamic": {n: {"S": n} for n in (16, 128)},
}
DEFAULT = (
    "mlp", "resnet18", "resnet50", "mobilenetv2", "bert_base", "gpt2_decode", "lstm", "gru",
)  # fmt: skip


def row(name: str, length: int, threads: int, seconds: float, folder: Path) -> Row:
    """What one model's roads take; `same_as` is a road whose program is the very one chosen.

    Args:
        name: The model.
        length: Of its inputs.
        threads: How many.
        seconds: How long each road is run, about.
        folder: Where what was measured is remembered.
    """
    work = WORKS[name]
    path = folder / f"{name}.onnx"
    if not path.exists():
        onnx.save(work.build(), path)
    sizes = SIZES.get(name, {}).get(length)
    compiled: dict[str, Executable] = {}
    again: dict[str, Executable] = {}
    took: list[tuple[float, float]] = []
    for made in (compiled, again):
        begin, busy = time.perf_counter(), time.process_time()
        made[MEASURED] = unity.compile(
            path, threads=threads, resolve=MEASURED, sizes=sizes, cache=folder
        )
        passed, busy = time.perf_counter() - begin, time.process_time() - busy
        took.append((round(passed, 1), round(busy, 1)))
    closed: dict[str, str] = {}
    feeds = work.feeds(length)
    for road in (*ROADS, *FORMS):
        try:
            for made in (compiled, again):
                one = unity.compile(path, threads=threads, resolve={"*": road}, cache=folder)
                one.run(feeds)
                made[road] = one
        except UnityError as error:
            closed[road] = error.message
    want = list(compiled["tir"].run(feeds).values())
    errors = {
        road: max(relative_error(g, w) for g, w in zip(exe.run(feeds).values(), want, strict=True))
        for road, exe in compiled.items()
    }
    runs = [partial(exe.run, feeds) for made in (compiled, again) for exe in made.values()]
    every = interleaved(runs, (), seconds)
    pairs = zip(compiled, every[: len(compiled)], every[len(compiled) :], strict=True)
    both = {road: (a, b) for road, a, b in pairs}
    times = {road: min(pair) for road, pair in both.items()}
    best = min((r for r in ROADS if r in times), key=lambda r: times[r])
    table = compiled[MEASURED].explain()
    chosen = [r.choice for r in table]
    same = [
        n for n in ROADS if n in compiled and chosen == [r.choice for r in compiled[n].explain()]
    ]
    return {
        "work": name,
        "length": length,
        "threads": threads,
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d"),
        "min_ms": {road: round(t * 1e3, 4) for road, t in times.items()},
        "slower_ms": {road: round(max(pair) * 1e3, 4) for road, pair in both.items()},
        "best_road": best,
        "ratio": ratio(times, best, same[0] if same else None),
        "same_as": same[0] if same else None,
        "taken": next(r.name for r in table.roads if r.taken),
        "sites": table.counts(),
        "error": {road: float(f"{e:.2g}") for road, e in errors.items()},
        "closed": closed,
        "first_s": took[0][0],
        "first_cpu_s": took[0][1],
        "again_s": took[1][0],
        "again_cpu_s": took[1][1],
    }


def ratio(times: Mapping[str, float], best: str, same_as: str | None) -> float:
    """The best single road's time by the chosen program's, by whichever name that was fastest."""
    chosen = min(times[n] for n in (MEASURED, same_as) if n is not None)
    return round(times[best] / chosen, 3)


def line(r: Row) -> str:
    """A row as text."""
    if "failed" in r:
        return f"{r['work']} {r['length']} x{r['threads']}: {r['failed']}"
    times = "  ".join(f"{road} {t:.3f}" for road, t in r["min_ms"].items())
    return (
        f"{r['work']} {r['length']} x{r['threads']}: "
        f"{r['ratio']:.3f} of {r['best_road']}; {times}; "
        f"taken {r['taken']}: {r['sites']}; compiled in {r['first_s']} s "
        f"({r['first_cpu_s']} of cpu), again {r['again_s']} s ({r['again_cpu_s']}); "
        f"errors up to {max(r['error'].values()):.1g}"
    )


def in_process(name: str, length: int, threads: int, seconds: float) -> Row:
    """A row, made in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.roads", name, "--length", str(length)]
    command += ["--threads", str(threads), "--seconds", str(seconds), "--child"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    found = [text for text in done.stdout.splitlines() if text.startswith("{")]
    if not found:
        failed = f"the process ended with {done.returncode}"
        return {"work": name, "length": length, "threads": threads, "failed": failed}
    made: Row = json.loads(found[-1])
    return made


def kept(rows: list[Row]) -> None:
    """Write rows to the file, those of before that none of them replaces kept."""

    def key(r: Row) -> tuple[object, ...]:
        return r["work"], r["length"], r["threads"]

    known = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    merged = {key(r): r for r in (*known, *rows)}
    order = list(WORKS)
    rows = sorted(merged.values(), key=lambda r: (order.index(r["work"]), *key(r)[1:]))
    whole = {"rows": rows}
    RESULTS.write_text(json.dumps(whole, indent=1) + "\n")


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("works", nargs="*", default=list(DEFAULT))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--length", type=int)
    parser.add_argument("--child", action="store_true")
    options = parser.parse_args()
    if options.child:
        with tempfile.TemporaryDirectory() as folder:
            name, threads = options.works[0], options.threads[0]
            made = row(name, options.length, threads, options.seconds, Path(folder))
            print(json.dumps(made), flush=True)
        return
    for name in options.works:
        for threads in options.threads:
            lengths = [options.length] if options.length else SIZES.get(name, WORKS[name].lengths)
            for length in lengths:
                made = in_process(name, length, threads, options.seconds)
                print(line(made), flush=True)
                kept([made])


if __name__ == "__main__":
    main()
