"""``python -m tests.bench.tuning``: what a search finds, how soon, and how well its model ranks.

``structure``: from nothing but a kernel's structure (the rules' space is left out), how the fastest
candidate compares with the default rules, after 200 trials or 5 minutes.
``table``: a table of operators tuned for some trials each, from the default on.
``pool``: candidates drawn by chance from all spaces, which a model learns from and is judged by.
``model``: the rank correlation of the learned model on kernels that it saw nothing of, from the
trials of ``pool``.
``random``: how many trials search with the model needs for what random search finds, the median of
five seeds.

``best_alone`` is the fastest by a single race of a candidate, which may be luck; ``best_within``
the fastest of those that ran within the program for longer, None if none was faster alone;
``gain`` what the program is faster by, which is never slower than by default.

Everything is measured on one thread; results are kept by part in ``tuning.json``, for each machine.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from math import inf
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

import unity
from tests.bench.machine import machine
from unity.ir.module import IRModule
from unity.script import parse
from unity.tuning.cost import LearnedModel, PriorModel
from unity.tuning.cost.model import CostModel
from unity.tuning.records import Records, Trial
from unity.tuning.records.record import Best

RESULTS = Path(__file__).with_name("tuning.json")
SPARE = 1e-12


def program(body: str, **shapes: str) -> IRModule:
    """A program of one expression over tensors of some shapes."""
    params = ", ".join(f"{name}: f32[Tensor, {shape}]" for name, shape in shapes.items())
    return parse(f"@script.function\ndef main({params}):\n    return {body}\n")


WORKS: dict[str, Callable[[], IRModule]] = {
    "matmul 512": lambda: program("R.matmul(x, w)", x="512, 512", w="512, 512"),
    "conv3x3 64-64 56": lambda: program(
        "R.nn.conv2d(x, w, padding=1)", x="1, 64, 56, 56", w="64, 64, 3, 3"
    ),
    "attention 8x256x64": lambda: program(
        "R.nn.attention(q, k, v)", q="1, 256, 8, 64", k="1, 256, 8, 64", v="1, 256, 8, 64"
    ),
    "layer_norm 512x768": lambda: program(
        "R.nn.layer_norm(x, g, b, axes=-1)", x="512, 768", g="768", b="768"
    ),
}
TABLE: dict[str, Callable[[], IRModule]] = {
    **WORKS,
    "softmax 512x1000": lambda: program("R.nn.softmax(x)", x="512, 1000"),
    "matmul 128x768x3072": lambda: program("R.matmul(x, w)", x="128, 768", w="768, 3072"),
    "matmul 7x512x512": lambda: program("R.matmul(x, w)", x="7, 512", w="512, 512"),
    "batch matmul 12x128x64x128": lambda: program(
        "R.matmul(x, w)", x="12, 128, 64", w="12, 64, 128"
    ),
    "conv1x1 256-64 56": lambda: program(
        "R.nn.conv2d(x, w)", x="1, 256, 56, 56", w="64, 256, 1, 1"
    ),
    "conv3x3/2 64-128 56": lambda: program(
        "R.nn.conv2d(x, w, strides=2, padding=1)", x="1, 64, 56, 56", w="128, 64, 3, 3"
    ),
    "depthwise 144 56": lambda: program(
        "R.nn.conv2d(x, w, padding=1, groups=144)", x="1, 144, 56, 56", w="144, 1, 3, 3"
    ),
    "conv1d k3 80-384": lambda: program(
        "R.nn.conv1d(x, w, padding=1)", x="1, 80, 1000", w="384, 80, 3"
    ),
    "max_pool 64 112": lambda: program(
        "R.nn.max_pool2d(x, pool_size=(3, 3), strides=2, padding=1)", x="1, 64, 112, 112"
    ),
    "sum rows 1024x1024": lambda: program("R.sum(x, axis=1)", x="1024, 1024"),
    "sum columns 1024x1024": lambda: program("R.sum(x, axis=0)", x="1024, 1024"),
    "gelu 512x768": lambda: program("R.nn.gelu(x)", x="512, 768"),
    "transpose 512x512": lambda: program("R.permute_dims(x)", x="512, 512"),
}


def tuned(
    name: str, db: Path, trials: int, seconds: float, *, rules: bool, strategy: str = "evolution"
) -> dict[str, object]:
    """What tuning one work found, in a file of records that has none of the work's yet."""
    begin = time.monotonic()
    found = unity.tune(
        TABLE[name](), threads=1, trials=trials, seconds=seconds, db=db, rules=rules,
        strategy=strategy,
    )  # fmt: skip
    kernel = max(found.kernels, key=lambda k: k.before)
    records = Records(db)
    alone = [
        t.seconds / t.reference for t in records.trials(kernel.kernel) if t.seconds and t.reference
    ]
    within = [
        r.ratio
        for r in records
        if isinstance(r, Best) and r.kernel == kernel.kernel and r.within and r.ratio != 1.0
    ]
    row: dict[str, object] = {
        "work": name,
        "trials": found.trials,
        "seconds": round(time.monotonic() - begin, 1),
        "best_alone": round(1 / min(alone, default=1.0), 3),
        "best_within": round(1 / min(within), 3) if within else None,
        "gain": round(found.before / max(found.after, SPARE), 3),
        "default_us": round(kernel.before * 1e6, 1),
        "tuned_us": round(kernel.after * 1e6, 1),
        "space": kernel.space,
        "point": kernel.point,
    }
    print(row, flush=True)
    return row


def rank(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Spearman's rank correlation."""
    x, y = (np.argsort(np.argsort(np.asarray(v))) for v in (a, b))
    return float(np.corrcoef(x, y)[0, 1])


def ranks(trials: list[Trial]) -> dict[str, object]:
    """For each kernel the correlation of a model that saw all the others."""
    usable = [t for t in trials if t.seconds and t.reference and t.features]
    kernels = sorted({t.kernel for t in usable})
    rows: list[dict[str, object]] = []
    for name in kernels:
        here = [t for t in usable if t.kernel == name]
        if len(here) < 16:
            continue
        model, prior = LearnedModel(), PriorModel()
        for t in usable:
            if t.kernel != name and t.seconds and t.reference:
                model.add(t.kernel, np.asarray(t.features, np.float32), t.seconds / t.reference)
        features = [np.asarray(t.features, np.float32) for t in here]
        taken = [t.seconds or 0.0 for t in here]

        def of(
            m: CostModel,
            features: list[npt.NDArray[np.float32]] = features,
            taken: list[float] = taken,
        ) -> float:
            return round(rank(m.predict("", features), taken), 3)

        rows.append({"kernel": name, "trials": len(here), "learned": of(model), "prior": of(prior)})
        print(rows[-1], flush=True)
    learned = [float(str(r["learned"])) for r in rows]
    return {"kernels": rows, "median": median(learned) if learned else None}


def candidates(name: str, trials: int, seed: int, strategy: str) -> list[float]:
    """What each candidate of a search by structure alone takes, of the default's time."""
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "trials.jsonl"
        found = unity.tune(
            TABLE[name](), threads=1, trials=trials, strategy=strategy,
            learn=strategy == "evolution", seed=seed, rules=False, db=db,
        )  # fmt: skip
        done = Records(db).trials(max(found.kernels, key=lambda k: k.before).kernel)
    return [t.seconds / t.reference if t.seconds and t.reference else inf for t in done]


def against_random(name: str, trials: int, seeds: int) -> dict[str, object]:
    """Trials that search with the model needs for what random search finds in so many.

    The goal is the median of what random searches found, within 1 %. How many trials those need
    for it is told by the share of all their candidates that reach it: when a single search first
    does so is mostly luck. Candidates alone count: the default, with which every search begins, may
    be faster than what either finds in a space by structure.
    """
    every: dict[str, list[list[float]]] = {"random": [], "evolution": []}
    for seed in range(seeds):
        for strategy, runs in every.items():
            runs.append(candidates(name, trials, seed, strategy))
            print(name, seed, strategy, round(min(runs[-1]), 3), flush=True)
    goal = 1.01 * median(min(run) for run in every["random"])
    drawn = [x for run in every["random"] for x in run]
    needs = len(drawn) / sum(x <= goal for x in drawn)
    firsts = [next((k + 1 for k, x in enumerate(r) if x <= goal), inf) for r in every["evolution"]]
    row: dict[str, object] = {
        "work": name,
        "trials": trials,
        "goal": round(goal, 3),
        "random_needs": round(needs, 1),
        "search_needs": firsts,
        "share": round(median(firsts) / needs, 3),
        "best": {s: [round(min(run), 3) for run in runs] for s, runs in every.items()},
    }
    print(row, flush=True)
    return row


def main() -> None:
    """Run a part and keep what it found."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.tuning", description=__doc__)
    parser.add_argument("part", choices=["structure", "table", "pool", "model", "random"])
    parser.add_argument("works", nargs="*", help="names of works; all of the part if none")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=300.0, help="for each work")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--db", type=Path, default=Path("tuning.jsonl"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    args = parser.parse_args()
    found: object
    if args.part in ("structure", "table", "pool"):
        names = args.works or list(WORKS if args.part == "structure" else TABLE)
        rules, method = args.part != "structure", "random" if args.part == "pool" else "evolution"
        found = [
            tuned(n, args.db, args.trials, args.seconds, rules=rules, strategy=method)
            for n in names
        ]
    elif args.part == "model":
        found = ranks(Records(args.db).trials())
    else:
        names = args.works or ["matmul 512"]
        found = [against_random(n, args.trials, args.seeds) for n in names]
    kept = json.loads(args.output.read_text()) if args.output.exists() else {}
    here = kept.setdefault(machine(), {})
    here[args.part] = {"date": time.strftime("%Y-%m-%d"), "found": found}
    args.output.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
