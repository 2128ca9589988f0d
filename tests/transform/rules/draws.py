"""``python -m tests.transform.rules.draws``: random legal decisions of every rule, interpreted.

Each draw takes a kernel of `FAMILIES` and up to three decisions, one after another, each from what
is legal when the others stand. The kernel is laid out with them (one in four is lowered whole) and
run in the interpreter, as is the one that was written. What was found goes to ``draws.json``, with
the decisions that were wrong or refused, and the exit code tells whether there are such.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from random import Random

from tests.bench.machine import machine
from tests.transform.tensor.kernels import assert_same
from unity.errors import UnityError
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.transform.rules.decisions import Decisions
from unity.transform.schedule import default_rules, default_schedule

from .families import FAMILIES, drawn
from .kernels import lowered

RESULTS = Path(__file__).with_name("draws.json")
MOST = 3
"""Decisions of a draw, at most."""
LOWERED = 4
"""One in so many draws is lowered."""


@dataclass(slots=True)
class Row:
    """What draws for a rule gave.

    Attributes:
        draws: How many.
        distinct: How many of them are no other one's equal.
        failures: Decisions with what went wrong.
    """

    draws: int = 0
    distinct: int = 0
    failures: list[str] = field(default_factory=list)


def draw(func: PrimFunc, target: Target, random: Random) -> Decisions:
    """Some decisions, each legal where those before it stand.

    Raises:
        UnityError: One that was said to be legal is refused.
    """
    rules = default_rules(func, target)
    changes: dict[str, dict[str, int]] = {}
    for _ in range(random.randrange(1, MOST + 1)):
        for block, new in drawn(rules, random).items():
            changes.setdefault(block, {}).update(new)
        rules = default_rules(func, target, changes)
    return changes


def row_of(k: int, count: int, seed: int) -> Row:
    """So many draws for a family."""
    family, row = FAMILIES[k], Row()
    func, random, seen = family.make(), Random(seed * 1000 + k), set[str]()
    for _ in range(count):
        row.draws += 1
        changes: Decisions | None = None
        try:
            changes = draw(func, family.target, random)
            if str(changes) in seen:
                continue
            seen.add(str(changes))
            done = default_schedule(func, family.target, changes).func
            if len(seen) % LOWERED == 0:
                done = lowered(done, family.target)
            assert_same(func, done, family.sizes)
        except (UnityError, AssertionError) as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            row.failures.append(f"family {k}: {changes}: {' '.join(lines[:4])[:300]}")
    row.distinct = len(seen)
    return row


def rows(families: Sequence[int], count: int, seed: int, jobs: int) -> dict[str, Row]:
    """So many draws in all, as many of each family, by rule; printed as they are done."""
    found: dict[str, Row] = {}
    counts = [count // len(families) + (at < count % len(families)) for at in range(len(families))]
    with ProcessPoolExecutor(jobs) as pool:
        each = pool.map(row_of, families, counts, [seed] * len(families))
        for k, row in zip(families, each, strict=True):
            rule = FAMILIES[k].rule
            print(f"{rule} (family {k}): {row.distinct} distinct", *row.failures, sep="\n  ")
            sys.stdout.flush()
            whole = found.setdefault(rule, Row())
            whole.draws += row.draws
            whole.distinct += row.distinct
            whole.failures += row.failures
    return dict(sorted(found.items()))


def main() -> None:
    """Draw, and write what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.transform.rules.draws")
    parser.add_argument("--count", type=int, default=2000, help="draws in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes that draw")
    parser.add_argument("--rule", help="of one rule only; nothing is written then")
    args = parser.parse_args()
    some = [k for k, f in enumerate(FAMILIES) if args.rule in (None, f.rule)]
    found = rows(some, args.count, args.seed, args.jobs)
    draws = sum(row.draws for row in found.values())
    wrong = sum(len(row.failures) for row in found.values())
    print(f"{draws} draws, {wrong} wrong")
    if args.rule is None:
        about = {
            "date": date.today().isoformat(),
            "cpu": machine(),
            "commit": _commit(),
            "seed": args.seed,
            "draws": draws,
        }
        lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in about.items()]
        each = [f"  {json.dumps(k)}: {json.dumps(asdict(row))}" for k, row in found.items()]
        lines.append('"rules": {\n' + ",\n".join(each) + "\n}")
        RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    sys.exit(wrong > 0)


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
