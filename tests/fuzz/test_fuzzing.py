"""The fuzzers: a fixed sample passes, and what fails is found, made small and written down."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.generators.state import SIZES
from unity.errors import UnityError
from unity.ir.graph import Binding, Call, Function, Op, VarBinding
from unity.ir.module import IRModule
from unity.ir.visit import map_body, walk_bindings
from unity.ir.visiting.visit_graph import map_bodies
from unity.transform import Context, Pass, Pipeline

from .__main__ import fuzz, main, write
from .graphs import Graph
from .kernels import RUN_STEPS, Scheduled, drawn_with_steps, script, smaller
from .kind import Kind, sort_of
from .kinds import KINDS, graph_kind
from .notes import Slice, next_seed, note, rows_of
from .running import failure_of, judged
from .shrink import parts_removed, shrunk

SAMPLE = {"script": 6, "schedule": 12, "graph": 2, "kernel": 2, "samples": 1, "compiled": 1}


@pytest.mark.long("draws and runs programs of each kind, compiled ones as well")
@pytest.mark.parametrize("name", SAMPLE)
def test_a_fixed_sample(name: str) -> None:
    kind = KINDS[name]()
    for seed in range(SAMPLE[name]):
        kind.check(kind.draw(seed))


DRAWN = """
from tests.fuzz.kinds import KINDS

for name, make in KINDS.items():
    kind = make()
    for seed in range(12):
        print(name, seed, kind.script(kind.draw(seed), ""))
"""


@pytest.mark.long("imports the compiler twice")
def test_a_seed_is_one_program_in_every_process() -> None:
    texts = [
        subprocess.run(
            [sys.executable, "-c", DRAWN],
            env={**os.environ, "PYTHONHASHSEED": order},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for order in ("1", "2")
    ]
    assert texts[0]
    assert texts[0] == texts[1]


@pytest.mark.long("compiles a module")
def test_a_script_of_a_compiled_program_makes_both_calls(tmp_path: Path) -> None:
    kind = KINDS["compiled"]()
    program = next(g for g in map(kind.draw, range(1, 99)) if g.sizes != SIZES)
    path = tmp_path / "found.py"
    path.write_text(kind.script(program, "no"))
    calls = runpy.run_path(str(path))["calls"]
    usual, own = program.arguments(SIZES), program.arguments()
    assert [[a.shape for a in args] for args in calls] == [
        [a.shape for a in args] for args in (usual, own)
    ]
    assert calls[0][0].shape != calls[1][0].shape


def test_a_kernel_is_written_down_though_it_is_not_called(tmp_path: Path) -> None:
    kind = KINDS["script"]()
    program = kind.draw(0)
    assert "main" in program.module.prim_funcs()
    assert [*kind.smaller(program)] == []
    path = tmp_path / "found.py"
    path.write_text(kind.script(program, "no"))
    runpy.run_path(str(path))


@dataclass(frozen=True, slots=True)
class SumsAreDifferences(Pass):
    """A broken pass: additions become subtractions."""

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """The module, wrong."""
        graphs = module.graph_functions()
        return IRModule({**module, **{n: _without_sums(f) for n, f in graphs.items()}})


def _without_sums(function: Function) -> Function:
    made = map_bodies(function, lambda b: map_body(b, _changed, lambda e: e))
    assert isinstance(made, Function)
    return made


def _changed(binding: Binding) -> Binding:
    match binding:
        case VarBinding(var, Call(Op("add"), args, attrs)):
            return VarBinding(var, Call(Op("subtract"), args, attrs))
        case _:
            return binding


BROKEN = graph_kind(
    Pipeline((SumsAreDifferences(),)),
    "Pipeline((SumsAreDifferences(),))",
    "from tests.fuzz.graphs import Graph, check_printing\n"
    "from tests.fuzz.test_fuzzing import SumsAreDifferences\n"
    "from unity.transform import Pipeline",
)


@pytest.mark.long("judges each smaller program in a process of its own")
def test_what_a_broken_pass_does_becomes_one_operator(tmp_path: Path) -> None:
    seed, failure = next((s, f) for s, f in judged(BROKEN, range(40)) if f is not None)
    assert "results differ" in failure
    before = BROKEN.draw(seed)
    small, said = shrunk(BROKEN, before, failure, seconds=120)
    main_function = small.module.graph_functions()["main"]
    ops = [b.value.callee for b in walk_bindings(main_function) if isinstance(b.value, Call)]
    assert ops == [Op("add")]
    assert len([*walk_bindings(main_function)]) <= 2
    assert sort_of(said) == sort_of(failure)
    path = tmp_path / "found.py"
    path.write_text(BROKEN.script(small, said))
    with pytest.raises(UnityError, match="SumsAreDifferences changed what 'main' computes"):
        runpy.run_path(str(path))


def check_no_fuse(program: Scheduled) -> None:
    """As if loops were not to be fused."""
    if any(i.name == "fuse" for i in program.trace):
        raise AssertionError("two loops are one")


FUSED = Kind("schedule", drawn_with_steps, check_no_fuse, smaller, script("schedule", RUN_STEPS))


@pytest.mark.long("judges each smaller program in a process of its own")
def test_steps_and_kernels_become_few(tmp_path: Path) -> None:
    seed, failure = next((s, f) for s, f in judged(FUSED, range(200)) if f is not None)
    program, _ = shrunk(FUSED, FUSED.draw(seed), failure, seconds=120)
    names = [i.name for i in program.trace]
    assert names.count("fuse") == 1
    assert len(names) <= 3
    path = tmp_path / "found.py"
    path.write_text(FUSED.script(program, failure))
    runpy.run_path(str(path))  # our schedules do nothing wrong by it


def _dies(seed: int) -> None:
    if seed == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    while seed == 2:
        pass
    if seed == 3:
        raise ValueError("no")


def test_crashes_and_hangs_are_failures() -> None:
    kind = Kind(
        "dies", lambda seed: seed, _dies, lambda of: iter(()), lambda of, how: how, limit=0.3
    )
    found = dict(judged(kind, range(5)))
    assert found == {
        0: None,
        1: "Crash: the process ends by signal SIGSEGV",
        2: "TooLong: more than 0 seconds",
        3: "ValueError: no",
        4: None,
    }
    assert failure_of(kind, 1) == found[1]


def test_what_can_not_be_drawn_is_a_failure(tmp_path: Path) -> None:
    def draw(seed: int) -> Graph:
        raise ValueError(f"seed {seed}")

    kind = Kind("graph", draw, lambda p: None, lambda p: iter(()), lambda p, f: "")
    assert fuzz(kind, range(1), 1, tmp_path) == {0: "ValueError: seed 0"}
    assert "draw(0)" in write(kind, 0, "", tmp_path).read_text()


def test_the_command_goes_on_where_it_ended(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    for seed in (["--seed", "5"], []):
        args = ["script", "--count", "3", *seed, "--output", str(out)]
        assert main([*args, "--folder", str(tmp_path)]) == 0
    row = rows_of(out)["script"]
    assert (row["count"], row["failures"], row["mended"]) == (6, {}, {})
    assert [s["seeds"] for s in row["slices"]] == [[5, 11]]


def test_slices_say_where_the_code_changed_and_what_was_mended(tmp_path: Path) -> None:
    out = tmp_path / "results.json"

    def ran(first: int, last: int, commit: str) -> Slice:
        return Slice(range(first, last), commit, "2026-11-28", "znver3", 2)

    note(out, "graph", ran(0, 4, "a"), {1: "ValueError: no", 2: "Crash: SIGSEGV"})
    note(out, "graph", ran(4, 6, "a"), {})
    note(out, "graph", ran(6, 8, "b"), {})
    note(out, "graph", ran(1, 2, "b"), {})
    row = rows_of(out)["graph"]
    assert [(s["seeds"], s["commit"], s["seconds"]) for s in row["slices"]] == [
        ([0, 6], "a", 4),
        ([6, 8], "b", 2),
        ([1, 2], "b", 2),
    ]
    assert (row["count"], next_seed(out, "graph"), next_seed(out, "script")) == (8, 8, 0)
    assert row["failures"] == {"2": "Crash: SIGSEGV"}
    assert row["mended"] == {"1": {"failure": "ValueError: no", "passes_at": "b"}}
    note(out, "graph", ran(1, 2, "c"), {1: "ValueError: again"})
    row = rows_of(out)["graph"]
    assert row["failures"] == {"1": "ValueError: again", "2": "Crash: SIGSEGV"}
    assert row["mended"] == {}


def test_cuts_leave_out_each_part() -> None:
    items = tuple(range(5))
    cuts = [*parts_removed(items)]
    assert all(len(c) < 5 for c in cuts)
    assert {c for c in cuts if len(c) == 4} == {items[:k] + items[k + 1 :] for k in range(5)}
    assert [*parts_removed(())] == []
