"""Logs of TVM's tuners (AutoTVM, Ansor, MetaSchedule): what in them says something to us.

A record is a JSON line. Schedules are ours, so of a record only those tile sizes count that a
decision of our rules has, too; the names of the others are kept, so that none is dropped silently.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unity.errors import UnityError

CHANNELS = "channels"
"""Output channels of a tile, of which a rule decides how many registers (``columns``) they are."""
DECISIONS: dict[str, dict[str, str]] = {
    "conv2d": {"tile_ow": "rows", "tile_oc": CHANNELS, "tile_ic": "steps"},
    "dense": {"tile_y": "rows", "tile_k": "steps"},
    "batch_matmul": {"tile_y": "rows", "tile_k": "steps"},
}
"""Decisions of our rules (`Executable.rules`) for what AutoTVM calls the inner part of a tile."""


@dataclass(frozen=True, slots=True)
class Record:
    """A measurement of a tuner.

    Attributes:
        tuner: "autotvm", "ansor" or "metaschedule".
        task: What was tuned: ``conv2d_NCHWc.x86``, or a key.
        target: For what.
        seconds: The mean time, or None where it failed.
        arguments: What the task was made of: shapes of tensors, then strides, paddings and the
            like; nothing where the record does not say.
        decisions: What of it are decisions of ours, by their names.
        ignored: What of it says nothing here.
    """

    tuner: str
    task: str
    target: str
    seconds: float | None
    decisions: dict[str, int]
    ignored: tuple[str, ...]
    arguments: tuple[Any, ...] = ()


def read_log(file: str | Path | Iterable[str]) -> list[Record]:
    """The records of a log.

    Args:
        file: Its path, or its lines. Of MetaSchedule, ``database_tuning_record.json``.

    Raises:
        UnityError: It can't be read, or a line is of none of the three.
    """
    if isinstance(file, str | Path):
        try:
            lines: Iterable[str] = Path(file).read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UnityError(f"can't read the log {file}: {error}") from None
    else:
        lines = file
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            record = _record(line)
            if record is None:
                raise UnityError(
                    f"line {number} is no record of AutoTVM, Ansor or MetaSchedule: {line[:60]}"
                )
            found.append(record)
    return found


def best(records: Iterable[Record]) -> list[Record]:
    """The fastest record of each task."""
    found: dict[str, Record] = {}
    for record in records:
        known = found.get(record.task)
        if record.seconds is not None and (
            known is None or known.seconds is None or record.seconds < known.seconds
        ):
            found[record.task] = record
    return list(found.values())


def summary(records: Sequence[Record]) -> str:
    """What a log says to us, for people."""
    ignored = sorted({name for r in records for name in r.ignored})
    lines = [f"{len(records)} records of {len({r.task for r in records})} tasks"]
    lines += (
        f"{r.task}: {', '.join(f'{k}={v}' for k, v in r.decisions.items())}"
        for r in best(records)
        if r.decisions
    )
    if ignored:
        lines.append(f"without a meaning here: {', '.join(ignored[:12])}")
    return "; ".join(lines)


def _record(line: str) -> Record | None:
    with suppress(ValueError, KeyError, TypeError, IndexError, RecursionError):
        match json.loads(line):
            case {"input": [target, task, [*args], *_], "config": config, "result": result}:
                return _autotvm(str(target), str(task), args, config, result)
            case {"i": [[[key, target, *_], *_], *_] | [[key, target, *_], *_], "r": result}:
                return Record("ansor", str(key), str(target), _mean(result), {}, ("steps",))
            case [int() as workload, [_, seconds, target, *_]]:
                name = f"workload {workload}"
                return Record(
                    "metaschedule", name, _kind(target), _mean([seconds, 0]), {}, ("trace",)
                )
            case _:
                pass
    return None


def _kind(target: Any) -> str:
    return str(target.get("kind", target)) if isinstance(target, dict) else str(target)


def _mean(result: Any) -> float | None:
    times, error = result[0], result[1]
    numbers = [float(t) for t in times] if isinstance(times, list) else []
    return None if error or not numbers else sum(numbers) / len(numbers)


def _autotvm(target: str, task: str, args: list[Any], config: Any, result: Any) -> Record:
    entities = config["entity"] if "entity" in config else _old_entities(config)
    family = next((f for f in DECISIONS if task.startswith(f)), "")
    known = DECISIONS.get(family, {})
    decisions: dict[str, int] = {}
    ignored: list[str] = []
    for name, kind, value in entities:
        if kind == "sp" and name in known and isinstance(value, list):
            decisions[known[name]] = int(value[-1])
        else:
            ignored.append(str(name))
    shapes = [a[1] for a in args if isinstance(a, list) and a[:1] == ["TENSOR"]]
    name = " ".join([task, *map(str, shapes)])
    known_args = (*map(tuple, shapes), *args[len(shapes) :])
    seconds = _mean(result)
    return Record("autotvm", name, target, seconds, decisions, tuple(ignored), known_args)


def _old_entities(config: Any) -> list[list[Any]]:
    """Those of logs before 0.7, which held them as ``e``, some as text."""
    found = config["e"]
    return ast.literal_eval(found) if isinstance(found, str) else [*found]
