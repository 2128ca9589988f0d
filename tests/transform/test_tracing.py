"""Which pass is to blame, and what is written of each: on programs of both levels."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import unity
import unity.demo
from unity.checking import watched
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.equality import first_difference
from unity.ir.graph import Call, Op, VarBinding
from unity.ir.module import IRModule
from unity.ir.prim_expr import Binary, Imm
from unity.ir.stmt import PrimFunc, Stmt, Store
from unity.ir.visit import map_body
from unity.ir.visiting.visit_stmt import rewrite_stmt
from unity.script import constants_of, parse
from unity.transform import Context, Pass, Pipeline, map_functions, pipeline
from unity.transform.graph import EliminateCommonSubexpr, LegalizeOps, PlanMemory
from unity.transform.instruments import NumericCheck, bisect
from unity.transform.instruments.numeric import difference
from unity.transform.tensor import FlattenBuffers, SimplifyTir, VectorizeLoops

MODULE = parse("""
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 5], w: f32[Tensor, 5, 6]) -> f32[Tensor, n, 6]:
    with R.dataflow():
        y = R.matmul(x, w)
        z = R.nn.softmax(R.nn.relu(y), axis=-1)
    return z
""")


@dataclass(frozen=True, slots=True)
class WrongOp(Pass):
    """Puts an op for another: wrong, but well typed."""

    old: str
    new: str

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        def changed(b: VarBinding) -> VarBinding:
            match b.value:
                case Call(Op(name), args, _) if name == self.old:
                    return replace(b, value=Call(Op(self.new), args))
                case _:
                    return b

        return map_functions(
            module,
            lambda f: replace(
                f,
                body=map_body(
                    f.body, lambda b: changed(b) if isinstance(b, VarBinding) else b, lambda e: e
                ),
            ),
        )


@dataclass(frozen=True, slots=True)
class WrongStore(Pass):
    """Adds to everything that kernels store."""

    amount: float

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        return module.with_({k: self.kernel(f) for k, f in module.prim_funcs().items()})

    def kernel(self, func: PrimFunc) -> PrimFunc:
        def changed(s: Stmt) -> Stmt:
            if isinstance(s, Store) and s.value.dtype.name == "float32":
                amount = Imm(self.amount, s.value.dtype)
                return replace(s, value=Binary("add", s.value, amount))
            return s

        return replace(func, body=rewrite_stmt(func.body, changed))


@dataclass(frozen=True, slots=True)
class Raises(Pass):
    """Fails with what is no `UnityError`."""

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        raise IndexError("tuple index out of range")


NAN, HUGE = float("nan"), float("inf")
CULPRITS = [
    (EliminateCommonSubexpr, WrongOp("nn.relu", "exp")),
    (EliminateCommonSubexpr, WrongOp("nn.relu", "log")),  # NaN of negative numbers
    (LegalizeOps, WrongStore(0.01)),
    (FlattenBuffers, WrongStore(0.01)),
    (SimplifyTir, WrongStore(NAN)),
    (VectorizeLoops, WrongStore(HUGE)),
]


@pytest.mark.long("interprets a model after each pass")
@pytest.mark.rotated(2)
@pytest.mark.parametrize(("after", "culprit"), CULPRITS)
def test_the_culprit_is_found(after: type[Pass], culprit: Pass) -> None:
    passes = pipeline("cpu").insert_after(after, culprit)
    with pytest.raises(UnityError, match=f"^{culprit.name} changed what 'main' computes: at "):
        unity.compile(MODULE, pipeline=passes, check=True)
    with pytest.raises(UnityError, match=f"^{culprit.name} changed what 'main' computes: at "):
        unity.compile(MODULE, pipeline=passes, instruments=(watched(MODULE, 1e-4),))
    rng = np.random.default_rng(0)
    args = [rng.standard_normal((3, 5), np.float32), rng.standard_normal((5, 6), np.float32)]
    expected = np.asarray(interpret(MODULE, "main", args))

    def good(module: IRModule) -> bool:
        return np.allclose(np.asarray(interpret(module, "main", args)), expected, equal_nan=True)

    short = Pipeline(passes.passes[: passes.names.index(culprit.name) + 3])
    assert bisect(short, MODULE, Context(), good) == culprit


def test_numbers_that_are_nan_in_the_first_place_are_no_difference() -> None:
    module = parse("""
@script.function
def main(x: f32[Tensor, 40]) -> f32[Tensor, 40]:
    return R.log(x)
""")
    unity.compile(module, check=True, instruments=(watched(module, 1e-4),))
    apart = np.array([NAN, HUGE, -HUGE, 1.0])
    assert difference(apart, apart.copy(), 1e-4, 1e-5) is None
    for i, other in [(0, 0.0), (1, 1e30), (1, -HUGE), (2, NAN), (3, NAN), (3, HUGE)]:
        got = apart.copy()
        got[i] = other
        wrong = difference(apart, got, 1e-4, 1e-5)
        assert wrong == f"at [{i}] expected {apart[i]:.6g}, got {other:.6g}"


def test_a_pass_that_raises_is_named() -> None:
    passes = pipeline("cpu").insert_after(PlanMemory, Raises())
    with pytest.raises(IndexError) as caught:
        unity.compile(MODULE, pipeline=passes)
    assert caught.value.__notes__ == ["in the pass Raises"]


def test_what_can_not_be_run_any_more_is_blamed_on_its_pass() -> None:
    class Fails:
        calls = 0

        def __call__(self, module: IRModule, name: str, args: object) -> object:
            self.calls += 1
            if self.calls > 2:
                raise AssertionError("no such buffer")
            return np.zeros(3)

    watch = NumericCheck(Fails(), {"main": []})
    with pytest.raises(UnityError, match=r"after Normalize it can't be run: AssertionError\("):
        pipeline("cpu").run(MODULE, Context(instruments=(watch,)))


def test_a_trace_of_a_model(tmp_path: Path) -> None:
    digits = Path(unity.demo.__file__).parent / "digits.onnx"
    unity.compile(digits, trace=tmp_path)
    index = (tmp_path / "index.html").read_text()
    rows = index.count("<tr>")
    assert rows == len(pipeline("cpu").passes) + 1
    assert len(index) < 200 * rows + 2000
    for name in ("ConvertLayout()", "ScheduleDefault()", "SimplifyTir()"):  # of both levels
        assert f"<td>{name}</td><td><a href=" in index
    pages = [index, *(p.read_text() for p in tmp_path.glob("0*.html"))]
    linked = {link for page in pages for link in re.findall("href='([^']*)'", page)}
    assert linked == {p.name for p in tmp_path.iterdir()}
    largest = max(len(p.read_text().splitlines()) for p in tmp_path.glob("*.html"))
    assert largest < 4000 + 1000
    layout = next(tmp_path.glob("*_ConvertLayout.html")).read_text()
    assert "<details open><summary>main <span class=new>+" in layout
    assert "R.nn.conv2d_blocked" in layout
    module = unity.load(digits)
    again = parse((tmp_path / "000_input.py").read_text(), constants_of(module))
    assert first_difference(again, module) is None


def test_a_trace_stops_where_a_pass_fails(tmp_path: Path) -> None:
    passes = pipeline("cpu").insert_after(LegalizeOps, Raises())
    with pytest.raises(IndexError):
        unity.compile(MODULE, pipeline=passes, trace=tmp_path)
    assert "LegalizeOps()" in (tmp_path / "index.html").read_text().splitlines()[-2]
