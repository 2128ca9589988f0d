"""``python -m tests.tuning.samples``: random points of the design spaces, interpreted.

Kernels are those of `tests.transform.rules.families`. Points are sampled, changed by one decision
and crossed, as searches do; what is legal is laid out and run in the interpreter beside the kernel
as it was written. What was found goes to ``samples.json``; the exit code tells whether a point was
wrong, or ended in something else than a refusal.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from random import Random

from tests.bench.machine import machine
from tests.transform.rules.families import FAMILIES
from tests.transform.tensor.kernels import assert_same
from unity.errors import UnityError
from unity.transform.rules.canonical import canonical
from unity.tuning.cost.leaves import leaves
from unity.tuning.spaces import Point, RuleSpace, Space, generic_spaces

MOST = 60_000
"""Iterations that the interpreter is asked for: some ten seconds."""
RESULTS = Path(__file__).with_name("samples.json")


@dataclass(slots=True)
class Row:
    """What points of a space gave.

    Attributes:
        points: Laid out and interpreted.
        refused: Those whose steps were refused.
        long: Those that the interpreter would take too long for.
        failures: Points with what went wrong.
    """

    points: int = 0
    refused: int = 0
    long: int = 0
    failures: list[str] = field(default_factory=list)


def row_of(k: int, count: int, seed: int) -> dict[str, Row]:
    """So many points for a family, by space."""
    family = FAMILIES[k]
    func = canonical(family.make())
    spaces: list[Space] = [RuleSpace(func, family.target), *generic_spaces(func, family.target)]
    found = {space.name: Row() for space in spaces}
    for at, space in enumerate(spaces):
        random, row = Random(seed * 1000 + 2 * k + at), found[space.name]
        known: list[Point] = []
        for _ in range(count):
            point = drawn(space, known, random)
            if point is None or point in known:
                continue
            try:
                done = space.schedule(point).func
            except UnityError:
                row.refused += 1
                continue
            known.append(point)
            if sum(x.iterations for x in leaves(done, family.sizes)) > MOST:
                row.long += 1
                continue
            row.points += 1
            try:
                assert_same(func, done, family.sizes)
            except (UnityError, AssertionError) as error:
                text = " ".join(str(error).split())[:300]
                row.failures.append(f"family {k} ({family.rule}): {point.text}: {text}")
    return found


def drawn(space: Space, known: Sequence[Point], random: Random) -> Point | None:
    """A point as a search draws it."""
    way = random.random()
    if len(known) > 1 and way < 0.2:
        a, b = random.sample(known, 2)
        return space.cross(a, b, random)
    if known and way < 0.6:
        return space.mutate(random.choice(known), random)
    return space.sample(random)


def rows(families: Sequence[int], count: int, seed: int, jobs: int) -> dict[str, Row]:
    """So many points for each of some families, by space."""
    found: dict[str, Row] = {}
    with ProcessPoolExecutor(jobs) as pool:
        each = pool.map(row_of, families, [count] * len(families), [seed] * len(families))
        for k, part in zip(families, each, strict=True):
            for name, row in part.items():
                whole = found.setdefault(name, Row())
                whole.points += row.points
                whole.refused += row.refused
                whole.long += row.long
                whole.failures += row.failures
                print(f"family {k}, {name}: {row.points} points", *row.failures, sep="\n  ")
            sys.stdout.flush()
    return found


def main() -> None:
    """Draw, and write what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.tuning.samples")
    parser.add_argument("--count", type=int, default=18, help="of each family and space")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=RESULTS)
    args = parser.parse_args()
    found = rows(range(len(FAMILIES)), args.count, args.seed, args.jobs)
    points = sum(row.points for row in found.values())
    wrong = sum(len(row.failures) for row in found.values())
    print(f"{points} points, {wrong} wrong")
    about = {"date": date.today().isoformat(), "machine": machine(), "seed": args.seed}
    data = {**about, "points": points, "spaces": {n: asdict(r) for n, r in found.items()}}
    args.output.write_text(json.dumps(data, indent=1) + "\n")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
