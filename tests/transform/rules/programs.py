"""``python -m tests.transform.rules.programs``: which kernels' default schedules are programs.

It walks the kernels that the default pipeline makes of the benchmark's models (small ones and whole
ones; of known sizes, of unknown ones, in bfloat16) and of the operator table's samples, prints the
program of each and runs it, which has to give an equal kernel. Those without one go to
``programs.json`` with the reason, and `test_programs` fails where there are more. After a change
that wins some, or is meant to lose some, run this again and commit the file.

Machines are described ones, so that the file says the same wherever it is made.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Literal, TypeAlias

import onnx

from tests.bench import cnn, recurrent, transformer
from tests.codegen.llvm.levels import LEVELS
from tests.op.test_registry import COMPUTED, samples_of
from tests.transform.schedule.printed import difference, run_printed
from unity import te
from unity.compiler import load
from unity.errors import UnityError
from unity.ir.dims import Dynamic
from unity.ir.fingerprint import fingerprint
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.op.table import OPS
from unity.sample_checks import kernel_of
from unity.transform import Context, Precision, pipeline
from unity.transform.rules.default import schedule
from unity.transform.schedule import ScheduleDefault, default_schedule

RESULTS = Path(__file__).with_name("programs.json")
Sizes: TypeAlias = Literal["known", "unknown"]
IMAGES: Dynamic = {"image": {0: "n", 2: "h", 3: "w"}}
SENTENCES: Dynamic = {"input_ids": {0: "b", 1: "s"}, "attention_mask": {0: "b", 1: "s"}}
STEPS: Dynamic = {"x": {0: "t"}}


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the benchmark.

    Attributes:
        small: With every kind of kernel that it has, quickly walked.
        whole: Of the benchmark's sizes, layers that repeat left out.
        unknown: The dims that make its sizes unknown.
        known: Those that make them known.
    """

    small: Callable[[], onnx.ModelProto]
    whole: Callable[[], onnx.ModelProto]
    unknown: Dynamic
    known: Dynamic | None = None


MODELS: Mapping[str, Model] = {
    "mlp": Model(cnn.mlp, cnn.mlp, {"x": {0: "n"}}),
    "resnet18": Model(partial(cnn.resnet, 18, size=64, stages=2), partial(cnn.resnet, 18), IMAGES),
    "resnet50": Model(partial(cnn.resnet, 50, size=64, stages=1), partial(cnn.resnet, 50), IMAGES),
    "mobilenetv2": Model(partial(cnn.mobilenetv2, size=64, stages=3), cnn.mobilenetv2, IMAGES),
    "bert": Model(
        partial(transformer.bert, 1, 64, 4, 128, 500), partial(transformer.bert, 2), SENTENCES
    ),
    "gpt2": Model(
        partial(transformer.gpt2, 1, 64, 4, 128, 500, 256),
        partial(transformer.gpt2, 2),
        {},
        {"T": 1, "P": 16},
    ),
    "lstm": Model(
        partial(recurrent.recurrent, "LSTM", 4, 32, 32),
        partial(recurrent.recurrent, "LSTM"),
        STEPS,
    ),
    "gru": Model(
        partial(recurrent.recurrent, "GRU", 4, 32, 32), partial(recurrent.recurrent, "GRU"), STEPS
    ),
}


@dataclass(frozen=True, slots=True)
class Walk:
    """A model, compiled in one way."""

    model: str
    whole: bool
    sizes: Sizes
    precision: Precision
    machine: str

    @property
    def name(self) -> str:
        """As it stands in the file."""
        extent = "whole" if self.whole else "small"
        return f"{self.model}, {extent}, {self.sizes} sizes, {self.precision}, {self.machine}"

    def kernels(self) -> dict[str, PrimFunc]:
        """What `ScheduleDefault` is given, of equal kernels one."""
        model = MODELS[self.model]
        dynamic = model.known if self.sizes == "known" else model.unknown
        module = load(model.whole() if self.whole else model.small(), dynamic=dynamic or None)
        passes = pipeline(precision=self.precision).until(ScheduleDefault)
        funcs = passes.run(module, Context(LEVELS[self.machine])).prim_funcs()
        first = {fingerprint(func): name for name, func in reversed(funcs.items())}
        return {name: funcs[name] for name in reversed(first.values())}


WAYS: tuple[tuple[Sizes, Precision, str], ...] = (
    ("known", "f32", "avx2"),
    ("unknown", "f32", "avx2"),
    ("known", "bf16", "amx"),
    ("known", "f32", "avx512"),
    ("unknown", "bf16", "amx"),
)
SMALL = {w.name: w for m in MODELS for way in WAYS for w in (Walk(m, False, *way),)}
WHOLE = {w.name: w for m in MODELS for way in WAYS[:3] for w in (Walk(m, True, *way),)}
WALKS: Mapping[str, Walk] = {**SMALL, **WHOLE}
OPERATORS = tuple(sorted(COMPUTED))


def kernels_of(operator: str) -> dict[str, PrimFunc]:
    """The kernels of an operator's samples that have a compute rule for their types."""
    made: dict[str, PrimFunc] = {}
    for k, sample in enumerate(samples_of(operator)):
        tensors = kernel_of(OPS[operator], sample, lambda n: n)
        made[f"{operator}_{k}".replace(".", "_")] = te.create_prim_func(list(tensors))
    return made


@dataclass(frozen=True, slots=True)
class Row:
    """What the programs of some kernels are.

    Attributes:
        kernels: How many kernels there are.
        without: Those that have none, by the reason.
    """

    kernels: int
    without: Mapping[str, Sequence[str]]

    @staticmethod
    def of(funcs: Mapping[str, PrimFunc], target: Target) -> Row:
        """Of some kernels.

        Raises:
            AssertionError: A program gives another kernel when it is run, or not what is compiled.
        """
        without = defaultdict[str, list[str]](list)
        for name, func in funcs.items():
            try:
                made = default_schedule(func, target)
            except UnityError as error:
                without[error.message].append(name)
                continue
            where = difference(run_printed(made, name).func, made.func)
            assert where is None, (name, where)
            where = difference(made.func, schedule(func, target))
            assert where is None, (name, where)
        return Row(len(funcs), dict(sorted(without.items())))

    @property
    def none(self) -> int:
        """How many kernels have no program."""
        return sum(map(len, self.without.values()))


def row_of(name: str) -> Row:
    """That of a walk or of an operator.

    A kernel that is not what its program makes is a line under `without`: the walk goes on.
    """
    walk = WALKS.get(name)
    funcs, target = (
        (kernels_of(name), LEVELS["avx2"])
        if walk is None
        else (walk.kernels(), LEVELS[walk.machine])
    )
    try:
        return Row.of(funcs, target)
    except AssertionError as error:
        return Row(len(funcs), {f"WRONG: {error}"[:500]: tuple(funcs)})


def rows(names: Sequence[str], jobs: int) -> Iterator[tuple[str, Row]]:
    """Those of some names, as they are found."""
    if jobs == 1:
        yield from ((name, row_of(name)) for name in names)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from zip(names, pool.map(row_of, names), strict=True)


def committed() -> dict[str, Row]:
    """What the file holds."""
    return {name: Row(**row) for name, row in json.loads(RESULTS.read_text()).items()}


def share(found: Iterable[Row]) -> str:
    """How many of the kernels have a program, in words."""
    rows = tuple(found)
    kernels, none = sum(r.kernels for r in rows), sum(r.none for r in rows)
    return f"{kernels - none} of {kernels} kernels, {100 * (1 - none / max(1, kernels)):.1f} %"


def main() -> None:
    """Walk, print each row, and write the file: rows of other names are kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.transform.rules.programs")
    parser.add_argument("names", nargs="*", help="parts of rows' names; all if there are none")
    parser.add_argument("--jobs", type=int, default=1, help="processes that walk")
    args = parser.parse_args()
    every = (*WALKS, *OPERATORS)
    some = [n for n in every if not args.names or any(part in n for part in args.names)]
    found = committed() if args.names else {}
    for name, row in rows(some, args.jobs):
        found[name] = row
        print(f"{name}: {share([row])}", *row.without, sep="\n  ", flush=True)
    print(f"models: {share(r for n, r in found.items() if n in WALKS)}")
    print(f"operators: {share(r for n, r in found.items() if n not in WALKS)}")
    lines = (f"{json.dumps(n)}: {json.dumps(asdict(found[n]))}" for n in every if n in found)
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    wrong = [n for n, r in found.items() if any(w.startswith("WRONG") for w in r.without)]
    sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
