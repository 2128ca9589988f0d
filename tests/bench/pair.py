"""``python -m tests.bench.pair``: Unity and one peer take turns in one process; rows as JSON.

The benchmark starts it once for each peer and number of threads, because most runtimes fix their
threads for the whole process.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import onnx

import unity

from .peers import PEERS, STATIC, relative_error
from .session import InSession
from .timing import Run, interleaved
from .work import Feeds, Work
from .works import WORKS

Row = dict[str, Any]


Loaded = Callable[[Feeds], tuple[list[Any], Run]]
"""For inputs, all results of a call, and the call."""


def ours(path: Path, work: Work, threads: int, mode: dict[str, Any]) -> Loaded:
    """The model as Unity runs it; `mode` is for `compile`."""
    if work.session:
        kept = InSession(path, threads, mode)

        def begin(feeds: Feeds) -> tuple[list[Any], Run]:
            kept.begin(feeds)
            return kept.outputs(), kept

        return begin
    executable = unity.compile(str(path), threads=threads, **mode)
    return lambda feeds: (list(executable.run(feeds).values()), partial(executable.run, feeds))


def theirs(path: Path, work: Work, threads: int, peer_name: str, feeds: Feeds) -> Loaded:
    """The model as a peer runs it, ready for inputs such as these."""
    if peer_name == STATIC:
        sizes = {
            name: dict(enumerate(x.shape))
            for name, x in feeds.items()
            if not (work.session and name.startswith("past"))  # caches of a session have room
        }
        return ours(path, work, threads, {"dynamic": sizes})
    run = PEERS[peer_name].load(path, threads, feeds)
    return lambda feeds: (run(feeds), partial(run, feeds))


def rows(name: str, work: Work, peer_name: str, threads: int, seconds: float) -> Iterator[Row]:
    """One row for each length."""
    peer = PEERS.get(peer_name)
    precision = peer.precision if peer else "f32"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.onnx"
        onnx.save(work.build(), path)
        load = ours(path, work, threads, {} if precision == "f32" else {"precision": precision})
        other = None
        for length in work.lengths:
            feeds = work.feeds(length)
            start = time.perf_counter()
            if other is None or peer is None or not peer.any_length:
                other = theirs(path, work, threads, peer_name, feeds)
            want, peer_run = other(feeds)
            ready = time.perf_counter() - start
            got, run = load(feeds)
            error = max(relative_error(g, w) for g, w in zip(got, want, strict=True))
            times = interleaved({"unity": run, peer_name: peer_run}, seconds)
            mine, its = times["unity"], times[peer_name]
            yield {
                "work": name,
                "length": length,
                "threads": threads,
                "peer": peer_name,
                "precision": precision,
                "unity_min_ms": round(mine.min * 1e3, 5),
                "unity_median_ms": round(mine.median * 1e3, 5),
                "peer_min_ms": round(its.min * 1e3, 5),
                "peer_median_ms": round(its.median * 1e3, 5),
                "ratio": round(its.min / mine.min, 3),
                "error": float(f"{error:.2g}"),
                "peer_ready_s": round(ready, 2),
            }


def main() -> None:
    """Print the rows of what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("works", nargs="+", choices=list(WORKS))
    parser.add_argument("--peer", choices=[*PEERS, STATIC], required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    for name in options.works:
        try:
            for row in rows(name, WORKS[name], options.peer, options.threads, options.seconds):
                print(json.dumps(row), flush=True)
        except Exception as error:  # one work that a runtime refuses must not hide the others
            failed = {"work": name, "threads": options.threads, "peer": options.peer}
            print(json.dumps({**failed, "failed": f"{type(error).__name__}: {error}"}), flush=True)


if __name__ == "__main__":
    main()
