"""The policy "measure": the fastest road or mixture is taken and remembered; numbers stay."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unity
from tests.codegen.engine.stub import StubEngine, zeros
from unity.codegen.engine import InterpreterEngine, register_engine
from unity.codegen.engine.interpreter import InterpretedModule
from unity.codegen.llvm import host_target
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.machine.target import Target
from unity.runtime.executable import Executable
from unity.script import parse
from unity.transform.graph.resolve import Resolve, policy_of
from unity.transform.graph.resolve.engine import ENGINES
from unity.tuning import Database, MeasuredProgram, assignments, measured_resolution
from unity.tuning.chain import cheapest, savings
from unity.tuning.database import key_of
from unity.tuning.decision import MIXED
from unity.tuning.plan import MARGIN
from unity.tuning.segments import segments_of
from unity.tuning.timing import completed

CHAIN = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 32], w: f32[Tensor, 32, 32]) -> f32[Tensor, n, 32]:
    with R.dataflow():
        a = R.matmul(x, w)
        b = R.nn.relu(a)
        c = R.matmul(b, w)
        d = R.exp(R.negative(c))
    return d
"""

KERNEL = """
n = dim("n")
@script.prim_func
def twice(a: f32[Buffer, n, 16], c: f32[Buffer, n, 16]) -> None:
    for i, j in T.grid(n, 16):
        with T.block("twice"):
            vi, vj = T.axis.remap("SS", i, j)
            c[vi, vj] = a[vi, vj] * 2.0
@script.function
def main(x: f32[Tensor, n, 16], w: f32[Tensor, 16, 16]) -> f32[Tensor, n, 16]:
    with R.dataflow():
        y = R.call_tir(twice, (x,), out=f32[Tensor, n, 16])
        z = R.exp(R.matmul(y, w))
        o = R.matmul(z, w)
    return o
"""


class SlowModule(InterpretedModule):
    """Computes what it should, so slowly that it must never be chosen."""

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        time.sleep(0.02)
        super().__call__(inputs, outputs)


@dataclass(frozen=True, slots=True)
class Slow(InterpreterEngine):
    """An engine that is slow."""

    name: str = "slow"

    def compile(self, subgraph: IRModule, target: Target, threads: int) -> SlowModule:
        return SlowModule(subgraph)


def test_a_slow_engine_is_not_taken_and_the_explanation_says_so(tmp_path: Path) -> None:
    before = dict(ENGINES)
    ENGINES.clear()
    register_engine(Slow())
    try:
        exe = unity.compile(parse(CHAIN), resolve="measure", sizes={"n": 8}, cache=tmp_path)
    finally:
        ENGINES.clear()
        ENGINES.update(before)
    explanation = exe.explain()
    times = {road.name: road.seconds or 0.0 for road in explanation.roads}
    assert times["engine:slow"] > times["tir"]
    assert "engine:slow" not in explanation.counts()
    assert explanation.policy == "measure"
    assert sum(road.taken for road in explanation.roads) == 1
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, 32)).astype(np.float32)
    w = 0.1 * rng.standard_normal((32, 32)).astype(np.float32)
    np.testing.assert_allclose(exe(x, w), np.exp(-(np.maximum(x @ w, 0) @ w)), rtol=1e-4)


def test_neighbours_of_one_road_pay_for_the_joint_once() -> None:
    # Alone each segment costs the other road a transform of 2; together the three cost 9, not 15.
    table = [{"tir": 4.0, "other": 5.0}] * 3
    saved = savings(table, {"tir": 12.0, "other": 9.0})
    assert saved == {"tir": 0.0, "other": 3.0}
    assert cheapest(table, ["tir", "other"], saved) == ["other"] * 3
    mixed = [{"tir": 1.0, "other": 9.0}, {"tir": 9.0, "other": 1.0}, {"tir": 1.0, "other": 9.0}]
    assert cheapest(mixed, ["tir", "other"], {}) == ["tir", "other", "tir"]
    assert cheapest(mixed, ["tir", "other"], {}, [0.0, 3.0, 3.0]) == ["tir", "other", "tir"]
    assert cheapest(mixed, ["tir", "other"], {}, [0.0, 5.0, 5.0]) == ["tir", "tir", "tir"]
    closed: list[dict[str, float]] = [{"tir": 5.0, "other": 1.0}, {}, {"tir": 5.0, "other": 1.0}]
    assert cheapest(closed, ["tir", "other"], {}) == ["other", "tir", "other"]


def test_segments_are_cut_where_one_tensor_passes() -> None:
    function = parse(CHAIN).graph_functions()["main"]
    weight = {b.var: 1.0 for block in function.body.blocks for b in block.bindings}
    segments = segments_of(function, weight)
    assert [v for s in segments for v in s.members] == list(weight)
    assert len(segments) > 1
    for segment in segments:
        assert segment.function is not None


def test_what_was_measured_is_remembered(tmp_path: Path) -> None:
    first = Database(tmp_path)
    first.put("key", 0.5, "about")
    (tmp_path / "resolve.jsonl").open("a").write('{"key": "half')  # a writer was stopped
    again = Database(tmp_path)
    assert again.get("key") == 0.5
    assert again.get("half") is None
    assert len(again) == 1


def test_the_oldest_measurements_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unity.tuning.database.LIMIT", 4000)
    file = tmp_path / "resolve.jsonl"
    first = Database(tmp_path)
    for k in range(100):
        first.put(f"key {k}", float(k), "about")
    first.decide("program", "all of it", "about")
    assert file.stat().st_size > 4000
    again = Database(tmp_path)
    assert 1000 < file.stat().st_size <= 2000
    assert again.get("key 0") is None
    assert again.get("key 99") == 99.0
    assert again.decision("program") == "all of it"
    kept = file.read_text()
    assert Database(tmp_path).get("key 99") == 99.0
    assert file.read_text() == kept  # within the limit it stays as it is


def test_a_program_with_kernels_of_its_own_is_measured(tmp_path: Path) -> None:
    exe = unity.compile(parse(KERNEL), resolve="measure", sizes={"n": 8}, cache=tmp_path)
    assert {road.name for road in exe.explain().roads} >= {"tir", "library:openblas"}
    x = np.full((3, 16), 0.1, np.float32)
    w = np.full((16, 16), 0.1, np.float32)
    np.testing.assert_allclose(exe(x, w), np.exp(2 * x @ w) @ w, rtol=1e-5)


def test_what_the_program_calls_itself_is_nothing_to_choose(tmp_path: Path) -> None:
    for said in ({"main/y": "tir"}, {"*": "measure", "y": "tir"}):
        with pytest.raises(UnityError, match="for which the program calls tir itself"):
            unity.compile(parse(KERNEL), resolve=said, cache=tmp_path)


NESTED = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 16], w: f32[Tensor, 16, 16]):
    def step(state: Tensor, row: Tensor):
        new = R.matmul(state, w) + row
        return new, new
    last, rows = R.scan(step, init=(w,), inputs=(x,))
    if n > 2:
        z = R.matmul(last, w)
    else:
        z = R.matmul(w, last)
    return rows, z
"""


def test_sites_of_branches_and_loops_are_measured(tmp_path: Path) -> None:
    module = parse(NESTED)
    said = {"*": "measure", "main/z": "library:openblas.gemm"}
    x = np.full((3, 16), 0.1, np.float32)
    w = np.full((16, 16), 0.05, np.float32)
    for resolve in ("measure", said):
        exe = unity.compile(module, resolve=resolve, sizes={"n": 3}, cache=tmp_path)
        table = exe.explain()
        assert {road.name for road in table.roads if road.seconds} >= {"tir", "library:openblas"}
        assert "measured" in table["matmul"].reason or "fastest" in table["matmul"].reason
        found, wanted = exe(x, w), interpret(module, "main", [x, w])
        assert isinstance(found, tuple)
        assert isinstance(wanted, tuple)
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5)
    assert table["main/z"].choice == "library:openblas.gemm"
    assert table["main/z"].reason == "override 'main/z'"


@pytest.mark.parametrize(
    ("resolve", "sizes", "message"),
    [
        ("measure", {"m": 8}, r"sizes: no symbol m\nhint: the symbols are n"),
        (None, {"n": 8}, r"sizes without measuring"),
        ("static", {"n": 8}, r"sizes without measuring"),
    ],
)
def test_sizes_that_say_nothing_are_refused(
    resolve: str | None, sizes: dict[str, int], message: str
) -> None:
    with pytest.raises(UnityError, match=message):
        unity.compile(parse(CHAIN), resolve=resolve, sizes=sizes)


def test_sizes_of_different_lengths_are_refused() -> None:
    with pytest.raises(UnityError, match=r"values: give each as many"):
        assignments({"n": (1, 2), "m": (1, 2, 3)})


def test_keys_tell_constants_and_pipelines_apart() -> None:
    def key(width: int, road: str) -> str:
        w = np.zeros((8, width), np.float32)
        module = parse(
            "@script.function\n"
            "def main(x: f32[Tensor, 4, 8]) -> f32[Tensor, 4]:\n"
            '    return R.sum(R.matmul(x, R.const("w")), axis=1)\n',
            {"w": w},
        )
        return key_of(module, road, Target("cpu", "", "generic", ()), (), "")

    assert key(4, "tir") == key(4, "tir")
    assert key(4, "tir") != key(4096, "tir")
    assert key(4, "tir") != key(4, "tir bf16")


def fails_at_four(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """What an engine does that runs at some sizes only."""
    if outputs[0].shape[0] == 4:
        raise RuntimeError("not at this size")
    zeros(inputs, outputs)


@pytest.mark.rotated(1)
def test_a_road_that_fails_at_one_size_is_closed_at_all(tmp_path: Path) -> None:
    before = dict(ENGINES)
    ENGINES.clear()
    register_engine(StubEngine("small_only", run=fails_at_four))
    try:
        exe = unity.compile(parse(CHAIN), resolve="measure", sizes={"n": (4, 8)}, cache=tmp_path)
    finally:
        ENGINES.clear()
        ENGINES.update(before)
    table = exe.explain()
    (closed,) = (road for road in table.roads if road.seconds is None)
    assert closed.name == "engine:small_only"
    assert closed.why_not is not None
    assert "not at this size" in closed.why_not
    assert "engine:small_only: no, the engine small_only failed" in str(table)
    assert "engine:small_only" not in table.counts()


def test_what_was_decided_is_compiled_at_once_the_next_time(tmp_path: Path) -> None:
    first = unity.compile(parse(CHAIN), resolve="measure", sizes={"n": 8}, cache=tmp_path)
    lines = (tmp_path / "resolve.jsonl").read_text().splitlines()
    again = unity.compile(parse(CHAIN), resolve="measure", sizes={"n": 8}, cache=tmp_path)
    assert (tmp_path / "resolve.jsonl").read_text().splitlines() == lines
    assert again.explain() == first.explain()
    unity.compile(parse(CHAIN), resolve="measure", sizes={"n": 9}, cache=tmp_path)
    assert len((tmp_path / "resolve.jsonl").read_text().splitlines()) > len(lines)


FORMS = """
@script.function
def main(x: f32[Tensor, 1, 64, 16, 16]) -> f32[Tensor, 1, 64, 16, 16]:
    with R.dataflow():
        y = R.nn.relu(R.nn.conv2d(x, R.const("w"), padding=1))
        z = R.nn.conv2d(y, R.const("w"), padding=1)
    return z
"""


def forms() -> IRModule:
    w = np.random.default_rng(0).standard_normal((64, 64, 3, 3)).astype(np.float32)
    return parse(FORMS, {"w": w})


@pytest.mark.rotated(1)
def test_forms_of_ours_are_measured_and_shown(tmp_path: Path) -> None:
    table = unity.compile(forms(), resolve="measure", cache=tmp_path, threads=1).explain()
    for name in ("conv2d", "z"):
        measured = {c.implementation for c in table[name].candidates if c.measured}
        assert len(measured & {"tir:direct", "tir:winograd.2", "tir:winograd.4"}) > 1
    times = {road.name: road.seconds for road in table.roads if road.seconds is not None}
    (taken,) = (road for road in table.roads if road.taken)
    least = min(times, key=lambda r: times[r] / (MARGIN if r.startswith(MIXED) else 1.0))
    assert taken.name == least
    if not taken.name.startswith(MIXED):
        assert all(table[name].choice.startswith(taken.name) for name in ("conv2d", "z"))


WRONG = ((lambda y: y + 1, "differs"), (lambda y: y * np.nan, "finite, infinite or no number"))


@pytest.mark.rotated(2)
@pytest.mark.parametrize(("change", "why"), WRONG)
def test_an_engine_that_is_wrong_and_fast_is_closed(
    change: Callable[[Array], Array], why: str, tmp_path: Path
) -> None:
    class WrongModule(InterpretedModule):
        def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            super().__call__(inputs, outputs)
            for y in outputs:
                y[...] = change(y)

    @dataclass(frozen=True, slots=True)
    class Wrong(InterpreterEngine):
        name: str = "wrong"

        def compile(self, subgraph: IRModule, target: Target, threads: int) -> WrongModule:
            return WrongModule(subgraph)

    before = dict(ENGINES)
    ENGINES.clear()
    register_engine(Wrong())
    try:
        module = parse(CHAIN.replace("R.exp(R.negative(c))", "R.tanh(R.negative(c))"))
        table = unity.compile(module, resolve="measure", sizes={"n": 8}, cache=tmp_path).explain()
    finally:
        ENGINES.clear()
        ENGINES.update(before)
    (closed,) = (road for road in table.roads if road.name == "engine:wrong")
    assert closed.why_not is not None
    assert why in closed.why_not
    assert "engine:wrong" not in table.counts()


@pytest.mark.rotated(2)
@pytest.mark.parametrize("spiked", ["conv2d", "z"])
def test_a_decision_that_is_not_legal_for_these_weights_is_made_anew(
    spiked: str, tmp_path: Path
) -> None:
    def two(name: str) -> IRModule:
        rng = np.random.default_rng(0)
        good = rng.standard_normal((64, 64, 3, 3)).astype(np.float32) / 24
        bad = good.copy()
        bad[0, 0, 0, 0], bad[0, 1] = 3e38, 3e38
        weights = {"v": good, "w": bad} if name == "z" else {"v": bad, "w": good}
        return parse(FORMS.replace('"w"', '"v"', 1), weights)

    unity.compile(two("z"), resolve="measure", cache=tmp_path, threads=1)
    path = tmp_path / "resolve.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        if "decision" in row:  # legal for the site that is not spiked, or was before
            decided = json.loads(row["decision"])
            decided["overrides"] = [["main/z", "tir:winograd.4"]]
            row["decision"] = json.dumps(decided)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = unity.compile(two(spiked), resolve="measure", cache=tmp_path, threads=1).explain()
    ruled = {c.implementation: c.why_not for c in table[spiked].candidates}
    assert ruled["tir:winograd.4"] is not None
    assert table[spiked].choice != "tir:winograd.4"
    decisions = [x for x in path.read_text().splitlines() if '"decision"' in x]
    assert len(decisions) == 2


def test_where_our_own_kernels_fail_another_road_is_taken_and_said(tmp_path: Path) -> None:
    module = parse(CHAIN)
    function = module.graph_functions()["main"]

    def build(part: IRModule, step: Resolve) -> Executable:
        if not step.policy.overrides:
            raise UnityError("no such instruction")
        return unity.compile(part, resolve=step.policy.overrides)

    target = host_target(1)
    program = MeasuredProgram(
        module, "main", target, build, Resolve(), policy_of("measure"), ({"n": 8},)
    )
    step = measured_resolution(program, Database(tmp_path))
    assert function in module.functions.values()
    (ours,) = (road for road in step.roads if road.name == "tir")
    assert ours.why_not == "no such instruction"
    assert any(road.taken for road in step.roads)
    assert all("our own kernels failed" in why for why in step.reasons.values())

    def never(part: IRModule, step: Resolve) -> Executable:
        raise UnityError("nothing works")

    program = MeasuredProgram(
        module, "main", target, never, Resolve(), policy_of("measure"), ({"n": 8},)
    )
    with pytest.raises(UnityError, match=r"in no way.*\n.*tir: nothing works.*at n=8; `sizes`"):
        measured_resolution(program, Database(None))


def test_segments_are_cut_though_a_mask_and_results_pass_by() -> None:
    layers = "\n".join(
        f"        h{i + 1} = R.nn.relu(R.add(R.matmul(h{i}, w), m))" for i in range(12)
    )
    text = f"""
@script.function
def main(h0: f32[Tensor, 4, 8], w: f32[Tensor, 8, 8], mask: f32[Tensor, 4, 8]):
    with R.dataflow():
        m = R.multiply(mask, 2.0)
{layers}
        pair = (h3, h12)
    return pair
"""
    function = parse(text).graph_functions()["main"]
    weight = {b.var: 1.0 for block in function.body.blocks for b in block.bindings}
    segments = segments_of(function, weight)
    assert len(segments) > 6
    assert sum(s.function is not None for s in segments) > 6
    assert [v for s in segments for v in s.members] == list(weight)


@pytest.mark.parametrize("wrong", [(), -3, 3.5, "3", (4, "8"), True, None])
def test_sizes_that_are_none_are_refused(wrong: object) -> None:
    sizes: dict[str, Any] = {"n": wrong}
    with pytest.raises(UnityError, match="sizes: 'n' is"):
        assignments(sizes)


@pytest.mark.rotated(1)
def test_rounding_to_16_bits_is_no_wrong_result() -> None:
    chain = CHAIN.replace("R.exp(R.negative(c))", "R.negative(c)")
    module = parse(chain)
    rounded = "R.astype(R.astype({}, dtype='bfloat16'), dtype='float32')"  # on any machine
    for operand in ("x, w", "b, w"):
        both = ", ".join(rounded.format(v) for v in operand.split(", "))
        chain = chain.replace(f"R.matmul({operand})", f"R.matmul({both})")
    narrowed = parse(chain)
    target = host_target(1)

    def tolerates(narrow: bool) -> bool:
        def build(part: IRModule, step: Resolve) -> Executable:
            return unity.compile(narrowed if step.policy.overrides else part)

        policy, sizes = policy_of("measure"), ({"n": 8},)
        given = MeasuredProgram(module, "main", target, build, Resolve(), policy, sizes, narrow)
        return given.compile("tir", []) and given.compile("other", [("*", "tir")])

    assert tolerates(True)
    assert not tolerates(False)


CACHED = """
p = dim("p")
n = dim("n")
@script.function
def main(
    x: f32[Tensor, n, 8], past: f32[Tensor, p, 8]
) -> R.Tuple(f32[Tensor, n, 8], f32[Tensor, p + n, 8]):
    with R.dataflow():
        y = R.add(x, 1.0)
        present = R.concat((past, y), axis=0)
        s = R.matmul(y, R.permute_dims(present))
        o = R.matmul(s, present)
        out = (o, present)
    return out
"""


@pytest.mark.rotated(1)
def test_a_program_with_caches_is_measured(tmp_path: Path) -> None:
    exe = unity.compile(parse(CACHED), resolve="measure", cache=tmp_path, threads=1, caches=True)
    (ours,) = (road for road in exe.explain().roads if road.name == "tir")
    assert ours.seconds is not None
    rng = np.random.default_rng(0)
    x, room = rng.standard_normal((2, 8), np.float32), np.zeros((9, 8), np.float32)
    room[:3] = rng.standard_normal((3, 8), np.float32)
    present = np.concatenate((room[:3], x + 1))
    got, kept = exe(x, room, (3, 4))
    np.testing.assert_allclose(kept[:5], present)
    np.testing.assert_allclose(got, (x + 1) @ present.T @ present, rtol=1e-4)


def test_sizes_that_are_not_given_are_guessed_by_who_reads_them() -> None:
    text = """
b = dim("b")
h = dim("h")
w = dim("w", typical=96)
n = dim("n")
texts = dim("texts")
length = dim("length")
@script.function
def main(
    x: f32[Tensor, b, 8, h, w], y: f32[Tensor, n, 8], z: f32[Tensor, b, 8, 4, h + 2],
    tokens: i64[Tensor, texts, length],
):
    a = R.nn.conv2d(x, R.const("w"), padding=1)
    return a, R.nn.relu(y), R.nn.relu(z), tokens + 1
"""
    module = parse(text, {"w": np.ones((8, 8, 3, 3), np.float32)})
    main = module.graph_functions()["main"]
    guessed = {"b": 1, "h": 224, "w": 96, "n": 64, "texts": 1, "length": 64}
    assert completed(main, {}) == guessed
    assert completed(main, {"b": 7, "k": 3}) == {**guessed, "b": 7, "k": 3}
