"""`compile` and its options: input dims changed, results checked, passes edited, the cache."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import unity
from unity.errors import UnityError
from unity.ir.dims import Dynamic
from unity.ir.graph import Call, Function, Op, VarBinding
from unity.ir.module import IRModule
from unity.script import parse
from unity.transform import Context, Pass, pipeline
from unity.transform.graph import FuseOps, FuseTir, LegalizeOps
from unity.transform.instruments import Timing

STATIC = """
@script.function
def main(x: f32[Tensor, 8, 4], w: f32[Tensor, 4, 3]) -> f32[Tensor, 8, 3]:
    y = R.matmul(x, w)
    return R.nn.relu(y)
"""
SYMBOLIC = """
n = dim("n")

@script.function
def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
    return R.exp(x)
"""
W = np.ones((4, 3), np.float32)


def test_a_static_axis_becomes_a_symbol() -> None:
    exe = unity.compile(parse(STATIC), dynamic={"x": {0: "rows"}})
    assert exe.signature == "main(x: float32[rows, 4], w: float32[4, 3]) -> float32[rows, 3]"
    for rows in (1, 8, 30):
        np.testing.assert_allclose(exe(np.ones((rows, 4), np.float32), W), np.full((rows, 3), 4))


def test_a_symbol_gets_a_value() -> None:
    exe = unity.compile(parse(SYMBOLIC), dynamic={"n": 5})
    assert exe.signature == "main(x: float32[5, 4]) -> float32[5, 4]"
    with pytest.raises(UnityError, match="axis 0: expected 5, got 6"):
        exe(np.ones((6, 4), np.float32))
    assert unity.compile(parse(SYMBOLIC), dynamic={"x": {0: 7}}).symbols == {}


BESIDE = """
n = dim("n")

@script.function
def main(x: f32[Tensor, n, 4], y: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
    table = R.full((n, 4), R.const(2.0), dtype="float32")
    return R.add(R.add(x, y), table)
"""


def test_sizes_of_all_inputs_are_the_sizes_of_the_body() -> None:
    exe = unity.compile(parse(BESIDE), dynamic={"x": {0: 1}, "y": {-2: 1}})
    one = np.ones((1, 4), np.float32)
    np.testing.assert_array_equal(exe(one, one), np.full((1, 4), 4))
    assert exe.symbols == {}


IMPOSSIBLE: list[tuple[Dynamic, str]] = [
    ({"q": {0: "n"}}, r"no input 'q'.*x, w"),
    ({"x": {2: "n"}}, "'x' has no axis 2"),
    ({"x": {1: 5}}, "matmul"),
    ({"k": 3}, "no input has a symbol 'k'"),
]


@pytest.mark.parametrize(("dynamic", "message"), IMPOSSIBLE)
def test_impossible_changes_of_dims_are_refused(dynamic: Dynamic, message: str) -> None:
    with pytest.raises(UnityError, match=f"(?s){message}"):
        unity.compile(parse(STATIC), dynamic=dynamic)


@dataclass(frozen=True, slots=True)
class BreakExp(Pass):
    """A wrong pass: turns exp into sin."""

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        f = module["main"]
        assert isinstance(f, Function)
        (block,) = f.body.blocks
        (binding,) = block.bindings
        assert isinstance(binding, VarBinding)
        assert isinstance(binding.value, Call)
        wrong = replace(binding, value=replace(binding.value, callee=Op("sin")))
        body = replace(f.body, blocks=(replace(block, bindings=(wrong,)),))
        return module.with_({"main": replace(f, body=body)})


def test_check_passes_on_right_code_and_names_the_wrong_pass() -> None:
    module = parse(SYMBOLIC)
    unity.compile(module, check=True)
    broken = pipeline("cpu").insert_before(LegalizeOps, BreakExp())
    with pytest.raises(UnityError, match="BreakExp changed what 'main' computes"):
        unity.compile(module, pipeline=broken, check=True)


def test_the_pipeline_and_who_looks_on_are_arguments() -> None:
    module = parse(STATIC)
    timing = Timing()
    fused = unity.compile(module, instruments=[timing])
    plain = unity.compile(module, pipeline=pipeline("cpu").without(FuseOps).without(FuseTir))
    assert len(fused.kernels) == 1
    assert len(plain.kernels) == 2
    x = np.ones((8, 4), np.float32)
    np.testing.assert_array_equal(fused(x, W), plain(x, W))
    assert "FuseOps" in str(timing)


def test_a_second_compilation_reads_the_cache(tmp_path: Path) -> None:
    first = unity.compile(parse(SYMBOLIC), cache=tmp_path)
    stored = sorted(tmp_path.rglob("*.o"))
    assert stored
    second = unity.compile(parse(SYMBOLIC), cache=tmp_path)
    assert sorted(tmp_path.rglob("*.o")) == stored
    x = np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(first(x), second(x))


def test_a_damaged_cache_is_repaired(tmp_path: Path) -> None:
    unity.compile(parse(SYMBOLIC), cache=tmp_path)
    for path in tmp_path.rglob("*.o"):
        path.write_bytes(path.read_bytes()[:-20])
    x = np.ones((3, 4), np.float32)
    np.testing.assert_allclose(unity.compile(parse(SYMBOLIC), cache=tmp_path)(x), np.exp(x), 1e-5)


def test_ill_typed_modules_and_unknown_targets_are_refused() -> None:
    module = parse(SYMBOLIC)
    f = module["main"]
    assert isinstance(f, Function)
    wrong = IRModule({"main": replace(f, result=f.params[0].type), "g": replace(f, params=())})
    with pytest.raises(UnityError, match="g"):
        unity.compile(wrong)
    with pytest.raises(UnityError, match="no target 'tpu'"):
        unity.compile(module, target="tpu")


def test_importing_unity_is_quick_and_lazy() -> None:
    code = "import sys, unity; print(any(m in sys.modules for m in ('numpy', 'sympy', 'llvmlite')))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
    with pytest.raises(AttributeError, match="nonsense"):
        vars(unity)["__getattr__"]("nonsense")
    assert set(unity.__all__) <= {*dir(unity)}
    for name in unity.__all__:
        getattr(unity, name)
