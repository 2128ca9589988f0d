"""`unity bench`: a model's latency, interleaved with other runtimes in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from unity.errors import UnityError

from .feeds import Feed, named_as_in_the_model
from .options import Options
from .paths import program_in
from .source import only_models, ready

Run = Callable[[], object]
_PEERS = ("onnxruntime",)


def bench_model(
    model: Path,
    files: list[str],
    dims: list[str],
    repeat: int,
    peers: list[str],
    profile: bool,
    seed: int,
    options: Options,
    hosts: Sequence[str] = (),
) -> None:
    """Time and print minimum and median in milliseconds, with ratios against Unity."""
    console = Console(highlight=False)
    if peers:
        from unity.frontend.relay import is_relay

        only_models(model, "bench --vs")
        if program_in(model) is not None or is_relay(model):
            raise UnityError(f"{model}: peers run ONNX models alone", hint="leave out --vs")
    for peer in peers:
        if peer not in _PEERS:
            raise UnityError(f"no peer {peer!r}", hint=f"there are: {', '.join(_PEERS)}")
    given = ready(model, files, dims, seed, console, options, hosts)
    executable, feeds = given.executable, given.feeds
    console.print(given.report)
    contestants: dict[str, Run] = {"unity": lambda: executable.run(feeds)}
    for peer in peers:
        contestants[peer] = _peer(
            model, named_as_in_the_model(given.inputs, feeds), options.threads
        )
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for run in contestants.values():
        run()
    with console.status("timing"):
        for _ in range(repeat):
            for name, run in contestants.items():
                start = time.perf_counter()
                run()
                times[name].append((time.perf_counter() - start) * 1e3)
    table = Table("runtime", "min ms", "median ms", "min / unity")
    base = min(times["unity"])
    for name, values in times.items():
        low = min(values)
        table.add_row(name, f"{low:.3f}", f"{statistics.median(values):.3f}", f"{low / base:.2f}")
    console.print(table)
    if profile:
        console.print(str(executable.profile(**feeds)), markup=False, soft_wrap=True)


def _peer(model: Path, feeds: dict[str, Feed], threads: int | None) -> Run:
    try:
        import onnxruntime
    except ImportError:
        raise UnityError("onnxruntime is not installed", hint="pip install onnxruntime") from None
    options = onnxruntime.SessionOptions()
    if threads is not None:
        options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)
