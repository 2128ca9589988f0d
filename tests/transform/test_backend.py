"""Backends: their rules reach the passes, and what does not fit is refused by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import unity
from unity import te
from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.stmt import PrimFunc
from unity.ir.types import Type
from unity.op.registry import ComputeArg
from unity.script import parse
from unity.transform import Backend, backend, backend_of, pipeline, register_backend
from unity.transform.backend import BACKENDS, GROUP
from unity.transform.graph import Legalization, LegalizeOps, LegalizeRule
from unity.transform.schedule import AppliedRule, Schedule, ScheduleByRule, ScheduleDefault

MODULE = parse("""
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 4], y: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
    a = R.exp(x)
    b = R.subtract(a, y)
    return R.multiply(b, 2.0)
""")
rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    before = dict(BACKENDS)
    yield
    BACKENDS.clear()
    BACKENDS.update(before)


def computes(rules: Sequence[Legalization], scale: float) -> None:
    """Check that ``subtract`` is ``scale * x - y``, whatever is fused around it."""
    passes = pipeline("cpu").replace(LegalizeOps, LegalizeOps(tuple(rules)))
    executable = unity.compile(MODULE, pipeline=passes)
    for n in (1, 5):
        x, y = rng.standard_normal((2, n, 4), np.float32)
        np.testing.assert_allclose(executable(x, y), (np.exp(x) * scale - y) * 2, 1e-5, 1e-5)


def tripled(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
    x, y = args
    assert isinstance(x, te.Tensor)
    assert isinstance(y, te.Tensor)
    return te.compute(x.shape, lambda *i: x[i] * 3.0 - y[i], "tripled")


WRITTEN = """
rows = dim("rows")
@script.prim_func
def doubled(
    x: f32[Buffer, rows, 4], y: f32[Buffer, rows, 4], out: f32[Buffer, rows, COLUMNS]
) -> None:
    for i, j in T.grid(rows, 4):
        with T.block("doubled"):
            vi, vj = T.axis.remap("SS", i, j)
            out[vi, vj] = x[vi, vj] * 2.0 - y[vi, vj]
"""


def written(columns: int) -> PrimFunc:
    return parse(WRITTEN.replace("COLUMNS", str(columns))).prim_funcs()["doubled"]


def test_legalizations() -> None:
    def declines(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> None:
        return None

    computes([], 1)
    computes([Legalization("subtract", tripled)], 3)
    computes([Legalization("subtract", lambda args, attrs, result: written(4))], 2)
    computes([Legalization("subtract", declines)], 1)
    computes([Legalization("subtract", declines), Legalization("subtract", tripled)], 3)
    computes([Legalization("divide", tripled)], 1)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            lambda args, attrs, result: written(5),
            "does not fit the call: argument 2, axis 1: expected 5",
        ),
        (lambda args, attrs, result: (args[0], args[1]), "expected 4 arguments, got 3"),
        (lambda args, attrs, result: 3, "legalization of subtract gives int"),
    ],
)
def test_legalizations_that_do_not_fit(rule: LegalizeRule, message: str) -> None:
    with pytest.raises(UnityError, match=message):
        computes([Legalization("subtract", rule)], 1)


def test_a_legalization_that_fails_is_named() -> None:
    def fails(args: Sequence[ComputeArg], attrs: Attrs, result: Type) -> te.Tensor:
        raise UnityError("only 4 lanes")

    with pytest.raises(UnityError, match="the legalization of subtract fails: only 4 lanes"):
        computes([Legalization("subtract", fails)], 1)


@pytest.mark.parametrize(
    ("op", "why"), [("subtrakt", "there is no such op"), ("shape_of", "never becomes a kernel")]
)
def test_legalizations_of_what_is_no_kernel(op: str, why: str) -> None:
    with pytest.raises(UnityError, match=why):
        Legalization(op, tripled)


def no_rows(rule: AppliedRule, target: unity.Target) -> dict[str, int]:
    return {"vectors": 1} if rule.rule == "rows" else {}


def test_a_backend_decides_for_our_rules() -> None:
    cpu = backend_of("cpu")
    softmax = parse("""
@script.function
def main(x: f32[Tensor, 8, 96]) -> f32[Tensor, 8, 96]:
    return R.nn.softmax(x)
""")
    register_backend(replace(cpu, name="own", detect=own_machine, decide=no_rows))
    assert ScheduleDefault(no_rows) in pipeline("own").passes
    ours, other = unity.compile(softmax), unity.compile(softmax, "own")
    assert ours.rules("softmax")[0].decisions["vectors"] > 1
    assert other.rules("softmax")[0].decisions["vectors"] == 1
    x = rng.standard_normal((8, 96), np.float32)
    np.testing.assert_allclose(other(x), ours(x), 1e-5)


def own_machine(threads: int | None) -> unity.Target:
    return replace(backend_of("cpu").machine(threads), kind="own")


def test_schedule_rules_come_before_ours() -> None:
    seen: list[str] = []

    def declines(schedule: Schedule) -> bool:
        (block,) = schedule.get_blocks()
        seen.append(schedule.axis_kinds(block))
        schedule.parallel(schedule.get_loops(block)[0])  # forgotten
        return False

    def unrolls(schedule: Schedule) -> bool:
        schedule.unroll(schedule.get_loops(schedule.get_blocks()[0])[-1])
        return True

    passes = pipeline("cpu").insert_before(ScheduleDefault, ScheduleByRule((declines, unrolls)))
    executable = unity.compile(MODULE, pipeline=passes)
    assert seen == ["SS"]
    assert "parallel" not in executable.ir()
    x, y = rng.standard_normal((2, 3, 4), np.float32)
    np.testing.assert_allclose(executable(x, y), (np.exp(x) - y) * 2, 1e-5, 1e-5)


def test_a_schedule_rule_that_fails_is_named() -> None:
    def hasty(schedule: Schedule) -> bool:
        schedule.get_loops("nothing")
        return True

    passes = pipeline("cpu").insert_before(ScheduleDefault, ScheduleByRule((hasty,)))
    with pytest.raises(
        UnityError, match=r"the schedule rule hasty fails on the kernel '.*no block 'noth"
    ):
        unity.compile(MODULE, pipeline=passes)


def test_a_registered_backend() -> None:
    cpu = backend_of("cpu")
    mine = Backend(
        "mine",
        lambda threads: replace(cpu.machine(threads), kind="mine"),
        legalizations=(Legalization("subtract", tripled),),
        register=lambda: seen.append("registered"),
    )
    seen: list[str] = []
    register_backend(mine)
    assert seen == ["registered"]
    assert backend_of("mine") is mine
    assert pipeline("mine") == pipeline("cpu").replace(LegalizeOps, LegalizeOps(mine.legalizations))
    x, y = rng.standard_normal((2, 3, 4), np.float32)
    expected = (np.exp(x) * 3 - y) * 2
    for target in ("mine", mine.machine(1)):
        np.testing.assert_allclose(unity.compile(MODULE, target)(x, y), expected, 1e-5, 1e-5)


def test_what_a_target_takes_and_in_which_order() -> None:
    some = replace(backend_of("cpu"), implementations=("engine:b", "library:*", "engine:a*"))
    ranks = {i: some.rank(i) for i in ("tir", "tir:direct", "engine:b", "engine:ab", "engine:c")}
    assert ranks == {"tir": -1, "tir:direct": -1, "engine:b": 0, "engine:ab": 2, "engine:c": None}


def entries(monkeypatch: pytest.MonkeyPatch, *values: tuple[str, str]) -> None:
    """Have entry points found as if packages were installed."""
    made = [EntryPoint(name, value, GROUP) for name, value in values]
    monkeypatch.setattr(backend, "entry_points", lambda group: made)


def detects_nothing(threads: int | None) -> unity.Target:
    raise OSError("/dev/acme0: no such device")


def no_driver() -> None:
    raise OSError("libacme.so: cannot open shared object file")


ABSENT = Backend("absent", detects_nothing)
ALIKE = Backend("alike", lambda threads: backend_of("cpu").machine(threads))
UNREADY = Backend("unready", detects_nothing, register=no_driver)


def test_two_packages_with_one_name_are_both_named(monkeypatch: pytest.MonkeyPatch) -> None:
    entries(monkeypatch, ("absent", f"{__name__}:ABSENT"), ("absent", f"{__name__}:ALIKE"))
    with pytest.raises(UnityError, match="several packages have a backend 'absent'"):
        backend_of("absent")


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("absent", "ABSENT", "no machine for the target 'absent': OSError: /dev/acme0"),
        ("alike", "ALIKE", "'alike' detects a target of kind 'cpu'"),
        ("unready", "UNREADY", "'unready' of .* can't be registered: OSError: libacme.so"),
        ("other", "ALIKE", "'other' of .* calls itself 'alike'"),
        ("nothing", "NOTHING", "'nothing' of .* can't be loaded: AttributeError"),
    ],
)
def test_backends_that_do_not_work_here(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, why: str
) -> None:
    entries(monkeypatch, (name, f"{__name__}:{value}"))
    with pytest.raises(UnityError, match=why):
        unity.compile(MODULE, name)
    unity.compile(MODULE, "cpu")
