"""Whole scripts of TVM's users, as they are written there; their imports alone are changed.

``tvm`` is ``unity.relay.tvm``, ``tvm.relay`` is ``unity.relay``.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unity.demo
from unity import relay
from unity.errors import UnityError
from unity.interpreter import interpret

DIGITS = str(Path(unity.demo.__file__).parent / "digits.onnx")


def _run(script: str, **given: Any) -> dict[str, Any]:
    names: dict[str, Any] = {"np": np, **given}
    exec(compile(script, "<script>", "exec"), names)
    return names


TUNED = """
import numpy as np
from unity import relay
from unity.relay import tvm
import unity.relay.testing
from unity.relay import autotvm, auto_scheduler
from unity.relay.autotvm.tuner import XGBTuner
from unity.relay.tvm.autotvm.tuner import GATuner
from unity.relay.tvm.contrib import graph_executor
from unity.relay.tvm.contrib.utils import tempdir

image = np.random.default_rng(0).random((1, 1, 8, 8)).astype("float32")
mod, params = relay.frontend.from_onnx(model_path, {"image": image.shape})
target = tvm.target.Target("llvm")
runner = autotvm.LocalRunner(number=10, repeat=1, timeout=10, min_repeat_ms=0)
option = autotvm.measure_option(builder=autotvm.LocalBuilder(build_func="default"), runner=runner)
tasks = autotvm.task.extract_from_program(mod["main"], target=target, params=params)
for task in tasks:
    tuner_obj = XGBTuner(task, loss_type="reg")
    tuner_obj.tune(n_trial=20, measure_option=option,
                   callbacks=[autotvm.callback.progress_bar(20), autotvm.callback.log_to_file(log)])
with autotvm.apply_history_best(log):
    with tvm.transform.PassContext(opt_level=3, config={}):
        lib = relay.build(mod, target=target, params=params)
dev = tvm.device(str(target), 0)
module = graph_executor.GraphModule(lib["default"](dev))
module.set_input("image", image)
module.run()
scores = module.get_output(0, tvm.nd.empty((1, 10))).numpy()
ftimer = module.module.time_evaluator("run", dev, repeat=3, number=2)
times = np.array(ftimer().results) * 1e3
temp = tempdir()
path = temp.relpath("net.tar")
lib.export_library(path)
again = graph_executor.GraphModule(tvm.runtime.load_module(path)["default"](dev))
again.run(image=tvm.nd.array(image))
tvm.testing.assert_allclose(again.get_output(0).numpy(), scores)
files = temp.listdir()
"""


def test_a_tuned_model_of_onnx(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "unity"):
        names = _run(TUNED, model_path=DIGITS, log=str(tmp_path / "tuning.json"))
    expected = interpret(unity.load(DIGITS), "main", [names["image"]])
    np.testing.assert_allclose(names["scores"], np.asarray(expected), rtol=1e-4, atol=1e-4)
    assert names["times"].shape == (3,)
    assert names["files"] == ["net.unity"]
    assert "autotvm.apply_history_best" in caplog.text


IMPORTED = """
from unity import relay
from unity.relay import tvm
from unity.relay.build_module import bind_params_by_name

mod, params = relay.frontend.from_onnx(model_path, shape={"image": (2, 1, 8, 8)})
mod["main"] = bind_params_by_name(mod["main"], params)
mod = relay.transform.DynamicToStatic()(relay.transform.InferType()(mod))
text = mod.astext(show_meta_data=False)
image = np.random.default_rng(0).random((2, 1, 8, 8)).astype("float32")
fixed = bind_params_by_name(mod["main"], {"image": image})
mod = relay.transform.ToMixedPrecision("float16")(mod)
lib = relay.build(mod, "llvm", params=params)
machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params), tvm.cpu())
scores = machine.invoke("main", image)
mod["main"] = fixed
same = relay.build_module.create_executor("graph", mod, tvm.cpu(0), "llvm").evaluate()()
"""


def test_a_module_of_onnx_is_changed() -> None:
    names = _run(IMPORTED, model_path=DIGITS)
    assert "def main(image: f32[Tensor, 2, 1, 8, 8])" in names["text"]
    assert "f16" in names["lib"].executable.ir()
    expected = np.asarray(interpret(unity.load(DIGITS), "main", [names["image"]]))
    for found in (names["scores"], names["same"]):
        np.testing.assert_allclose(found, expected, rtol=2e-2, atol=2e-2)
    with pytest.raises(UnityError, match="holds functions of Unity, got int"):
        _run("mod['main'] = 3", mod=names["mod"])


PASSES = """
from unity import relay
from unity.relay import tvm
from unity.relay.tvm.ir.transform import PassContext
from unity.relay.expr_functor import ExprMutator
from unity.relay.build_module import bind_params_by_name
from unity.relay.function import Function
from unity.relay.transform import *

c = relay.const(np.ones((1, 8, 4, 4), "float32"))
weight, x = relay.var("weight", shape=(8, 8, 3, 3)), relay.var("x", shape=(1, 8, 6, 6))
y = relay.multiply(relay.add(c, c), relay.const(2, "float32"))
y = relay.add(relay.nn.conv2d(x, weight), y)
mod = tvm.IRModule.from_expr(Function([x, weight], relay.add(relay.add(y, c), relay.add(y, c))))
seq = tvm.transform.Sequential([
    relay.transform.FoldConstant(), relay.transform.EliminateCommonSubexpr(),
    relay.transform.FuseOps(fuse_opt_level=2), tvm.transform.PrintIR(),
])
with PassContext(opt_level=3, disabled_pass=["EliminateCommonSubexpr"]):
    kept = seq(mod)
with tvm.transform.PassContext(opt_level=3):
    folded = seq(mod)

@relay.transform.function_pass(opt_level=1)
class CustomPipeline:
    def __init__(self, multiplier):
        self.multiplier = multiplier

    def transform_function(self, func, mod, ctx):
        obj = self

        class ReplaceConstant(tvm.relay.ExprMutator):
            def visit_constant(self, c):
                return relay.multiply(obj.multiplier, c)

        return ReplaceConstant().visit(func)

custom_pass = CustomPipeline(multiplier=relay.const(3, "float32"))
assert custom_pass.info.name == "CustomPipeline"
tripled = custom_pass(folded)
layouts = relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})
converted = tvm.transform.Sequential([relay.transform.RemoveUnusedFunctions(), layouts])(tripled)
func = bind_params_by_name(converted["main"], {"weight": np.ones((8, 8, 3, 3), "float32")})
lib = relay.build(tvm.IRModule.from_expr(func), "llvm -mcpu=core-avx2 -libs=cblas")
module = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
module.run(x=np.ones((1, 8, 6, 6), "float32"))
found = module.get_output(0).numpy()
"""


def test_passes_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    names = _run(PASSES)
    assert (str(names["kept"]).count("add("), str(names["folded"]).count("add(")) == (4, 3)
    assert "nn.conv2d" in capsys.readouterr().out
    # 8 * 9 ones, and 4 * 3 and 1 * 3 of the constants, twice.
    np.testing.assert_allclose(names["found"], np.full((1, 8, 4, 4), (72 + 12 + 3) * 2))


TREES = """
from unity import relay
from unity.relay import tvm
from unity.relay.prelude import Prelude
from unity.relay.tvm.runtime.container import ADT
from unity.relay.tvm.runtime import vm as vm_rt

mod = tvm.IRModule()
prelude = Prelude(mod)
_, cons, nil = prelude.mod.get_type("List")
a = relay.var("a", shape=())
u, v = relay.var("u", shape=()), relay.var("v", shape=())
plus = relay.Function([u, v], u + v)
mod["main"] = relay.Function(
    [a], prelude.foldl(plus, relay.const(0.0), cons(a, prelude.cons(relay.const(2.0), nil())))
)
folded = relay.create_executor("vm", mod, tvm.cpu(), "llvm").evaluate()(np.float32(5))

mod = tvm.IRModule()
header, A = relay.GlobalTypeVar("Tree2"), relay.TypeVar("A")
node = relay.Constructor("Node", [header(A), A, header(A)], header)
empty = relay.Constructor("Empty", [], header)
mod[header] = relay.TypeData(header, [A], [node, empty])
tree = relay.var("tree", header(relay.scalar_type("float32")))
left, value, right = relay.var("left"), relay.var("value"), relay.var("right")
total = relay.GlobalVar("total")
mod[total] = relay.Function([tree], relay.Match(tree, [
    relay.Clause(relay.PatternConstructor(node, [
        relay.PatternVar(left), relay.PatternVar(value), relay.PatternVar(right)
    ]), total(left) + value + total(right)),
    relay.Clause(relay.PatternWildcard(), relay.const(0.0)),
]), relay.scalar_type("float32"))
arg = relay.var("arg", relay.TypeCall(header, [relay.scalar_type("float32")]))
mod["main"] = relay.Function([arg], total(arg))
machine = vm_rt.VirtualMachine(relay.vm.compile(mod, target="llvm"), tvm.cpu())
NIL = ADT(empty.tag, [])

def built(depth):
    if depth == 0:
        return NIL
    return ADT(node.tag, [built(depth - 1), tvm.nd.array(np.float32(depth)), NIL])

totals = [float(machine.invoke("main", built(depth))) for depth in range(4)]
text = mod.astext()

x, cell = relay.var("x", shape=(2,)), relay.var("cell")
written = relay.Let(relay.var("_"), relay.RefWrite(cell, relay.RefRead(cell) + x),
                    relay.RefRead(cell))
mod = tvm.IRModule.from_expr(relay.Function([x], relay.Let(cell, relay.RefCreate(x), written)))
doubled = relay.create_executor("debug", mod).evaluate()(np.ones(2, "float32"))

match = relay.Match(relay.Tuple([x, x]), [relay.Clause(
    relay.PatternTuple([relay.PatternVar(u), relay.PatternWildcard()]), u)], complete=False)
first = relay.create_executor("debug").evaluate(relay.Function([x], match))(np.ones(2, "float32"))
"""


def test_lists_trees_and_references() -> None:
    names = _run(TREES)
    assert float(names["folded"]) == 7
    assert names["totals"] == [0, 1, 3, 6]
    assert "match (" in names["text"]
    again = relay.create_executor("vm", relay.parse(names["text"])).evaluate()
    assert float(np.asarray(again(names["built"](3)))) == 6
    np.testing.assert_array_equal(names["doubled"], [2, 2])
    np.testing.assert_array_equal(names["first"], [1, 1])


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("tvm.te.compute", "tvm.te is not there"),
        ("tvm.cuda(0)", "programs run on the CPU"),
        ("tvm.contrib.debugger.debug_executor", "profile"),
        ("tvm.ir.instrument.PassTimingInstrument()", "watches passes"),
        ("relay.transform.LayoutConfig()", "no pass does what LayoutConfig did"),
        ("relay.GlobalTypeVar('T'); mod = tvm.IRModule(); mod.get_type('T')", "has no type 'T'"),
        ("import unity.relay.dataflow_pattern", "rewrite_rule"),
        ("tvm.rpc.connect", "no remote runner"),
    ],
)
def test_what_is_not_there_is_refused_with_what_to_do(line: str, what: str) -> None:
    with pytest.raises(UnityError) as caught:
        _run(f"from unity import relay\nfrom unity.relay import tvm\n{line}")
    assert what in str(caught.value)


def test_names_that_nobody_has() -> None:
    for line in ("import unity.relay.nothing", "from unity.relay.tvm.runtime import nothing"):
        with pytest.raises(ImportError, match="nothing"):
            _run(line)
    with pytest.raises(AttributeError, match=r"tvm\.runtime is not known to have 'nothing'"):
        _run("from unity.relay import tvm\ntvm.runtime.nothing")
