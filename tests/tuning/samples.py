"""``python -m tests.tuning.samples``: random points of the design spaces, interpreted.

Kernels are those of `tests.transform.rules.families`, and of kinds that these have none of. Points
are sampled, changed by one decision and crossed, as searches do; what is legal is laid out and run
in the interpreter beside the kernel as it was written. What was found is added to ``samples.json``;
the exit code tells whether a point was wrong, or ended in something else than a refusal.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path
from random import Random

from tests.bench.machine import machine
from tests.transform.rules.contraction.test_grouped_panels import LANES, TILES
from tests.transform.rules.families import FAMILIES, Family
from tests.transform.tensor.kernels import assert_same
from unity.errors import UnityError
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.transform.rules.canonical import canonical
from unity.tuning.cost.leaves import leaves
from unity.tuning.spaces import Point, RuleSpace, Space, generic_spaces

from .kernels import TARGET, tasks

MOST = 60_000
"""Iterations that the interpreter is asked for: some ten seconds."""
RESULTS = Path(__file__).with_name("samples.json")
VNNI = replace(LANES, features=(*LANES.features, "avx512vnni", "avx512vl"))


def program(body: str, shapes: Mapping[str, str], target: Target = TARGET, **sizes: int) -> Family:
    """The kernel of a program of one expression, over tensors of some dtypes and shapes."""
    params = ", ".join(f"{name}: {t}" for name, t in shapes.items())
    dims = "".join(f'{name} = dim("{name}")\n' for name in sizes)
    text = f"{dims}@script.function\ndef main({params}):\n    return {body}\n"
    return Family("", partial(_only, text, target, sizes), sizes, target)


def _only(text: str, target: Target, sizes: Mapping[str, int]) -> PrimFunc:
    (task,) = tasks(text, target, **sizes)
    return task.func


def others() -> list[Family]:
    """Kernels of kinds that no rule is tested with: as they were written, fused, of few bits."""
    conv = {"x": "f32[Tensor, 1, 3, 7, 9]", "w": "f32[Tensor, 4, 3, 3, 3]"}
    rows = {"x": "f32[Tensor, n, 36]"}
    bytes_ = {"x": "u8[Tensor, 5, 10]", "w": "i8[Tensor, 10, 7]"}
    pixels = {"x": "u8[Tensor, 1, 6, 2, 4]", "w": "i8[Tensor, 5, 6, 1, 2]"}
    halves = {"x": "bf16[Tensor, 5, 10]", "w": "bf16[Tensor, 10, 7]"}
    return [
        program("R.nn.conv1d(x, w, padding=1)",
                {"x": "f32[Tensor, 1, 3, 19]", "w": "f32[Tensor, 5, 3, 3]"}),
        program("R.nn.conv1d(x, w, strides=2)",
                {"x": "f32[Tensor, 1, 3, n]", "w": "f32[Tensor, 5, 3, 3]"}, n=12),
        program("R.nn.conv3d(x, w, padding=1)",
                {"x": "f32[Tensor, 1, 2, 3, 3, 5]", "w": "f32[Tensor, 3, 2, 3, 3, 3]"}),
        program("R.nn.relu(R.nn.conv2d(x, w, padding=1) + b)",
                {**conv, "b": "f32[Tensor, 1, 4, 1, 1]"}),
        program("R.nn.gelu(R.nn.conv2d(x, w, strides=2, padding=1))", conv),
        program("R.nn.avg_pool2d(x, pool_size=(2, 2), strides=2)",
                {"x": "f32[Tensor, 1, 3, 8, 10]"}),
        program("R.nn.rms_norm(x, g, axes=-1)", {**rows, "g": "f32[Tensor, 36]"}, n=3),
        program("R.mean(x, axis=-1)", rows, n=5),
        program("R.argmax(x, axis=-1)", rows, n=5),
        program("R.matmul(x, w, out_dtype='int32')", bytes_, VNNI),
        program("R.nn.conv2d(x, w, strides=(2, 2), padding=(0, 1, 0, 1), out_dtype='int32')",
                pixels, VNNI),
        program("R.matmul(x, w, out_dtype='float32')", halves, LANES),
        program("R.matmul(x, w, out_dtype='float32')", halves, TILES),
        program("R.nn.attention(q, k, v)",
                {x: f"f32[Tensor, 1, {n}, 1, 4]" for x, n in (("q", 64), ("k", 5), ("v", 5))}),
        program("R.permute_dims(x)", {"x": "f32[Tensor, 20, 37]"}),
    ]  # fmt: skip


KERNELS = [*FAMILIES, *others()]


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


def row_of(k: int, count: int, seed: int, most: int = MOST) -> dict[str, Row]:
    """So many points for a family, by space."""
    family = KERNELS[k]
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
            if sum(x.iterations for x in leaves(done, family.sizes)) > most:
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


def rows(
    families: Sequence[int], count: int, seed: int, jobs: int, most: int = MOST
) -> dict[str, Row]:
    """So many points for each of some families, by space."""
    found: dict[str, Row] = {}
    with ProcessPoolExecutor(jobs) as pool:
        each = pool.map(row_of, families, *([x] * len(families) for x in (count, seed, most)))
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
    parser.add_argument("--most", type=int, default=MOST, help="iterations of a point")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--kernels", type=int, nargs=2, default=(0, len(KERNELS)), help="from, to")
    args = parser.parse_args()
    found = rows(range(*args.kernels), args.count, args.seed, args.jobs, args.most)
    points = sum(row.points for row in found.values())
    wrong = sum(len(row.failures) for row in found.values())
    print(f"{points} points, {wrong} wrong")
    run: dict[str, object] = {
        "date": date.today().isoformat(), "machine": machine(), "seed": args.seed,
        "kernels": list(args.kernels), "count": args.count, "most": args.most, "points": points,
        "spaces": {name: asdict(row) for name, row in found.items()},
    }  # fmt: skip
    before = json.loads(args.output.read_text())["runs"] if args.output.exists() else []
    args.output.write_text(json.dumps({"runs": [*before, run]}, indent=1) + "\n")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
