"""Scripts of TVM's tutorials: import, build, run, time, export; only their imports are changed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unity
import unity.demo
from unity import relay
from unity.errors import UnityError
from unity.interpreter import interpret
from unity.machine.target import Target
from unity.relay import auto_scheduler, autotvm, graph_executor, tvm

DIGITS = Path(unity.demo.__file__).parent / "digits.onnx"


def test_a_model_of_onnx(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with np.load(DIGITS.with_suffix(".npz")) as held_out:
        image = held_out["images"][:1]
    mod, params = relay.frontend.from_onnx(str(DIGITS), {"image": image.shape}, dtype="float32")
    target = tvm.target.Target("llvm -mcpu=core-avx2")
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=target, params=params)
    assert isinstance(lib.executable.target, Target)
    assert "avx2" in lib.executable.target.features
    assert "avx512f" not in lib.executable.target.features
    dev = tvm.device(str(target), 0)
    module = graph_executor.GraphModule(lib["default"](dev))
    module.set_input("image", image.astype(np.float64))  # TVM's copy casts as well
    module.run()
    scores = module.get_output(0, tvm.nd.empty((1, 10))).numpy()
    expected = np.asarray(interpret(unity.load(DIGITS), "main", [image]))
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)
    assert module.get_input_info()[0] == {"image": (1, 1, 8, 8)}
    assert (module.get_num_inputs(), module.get_num_outputs()) == (1, 1)
    times = module.benchmark(dev, repeat=2, number=2)
    assert times.min <= times.median <= times.max
    evaluated = module.time_evaluator("run", dev, number=1, repeat=3)()
    assert len(evaluated.results) == 3
    assert module.module.time_evaluator("run", dev, number=1)().mean > 0

    with caplog.at_level(logging.WARNING, "unity"):
        lib.export_library(str(tmp_path / "net.tar"))
    assert "net.unity" in caplog.text
    loaded = tvm.runtime.load_module(str(tmp_path / "net.tar"))
    again = graph_executor.GraphModule(loaded["default"](tvm.cpu(0)))
    again["set_input"]("image", tvm.nd.array(image))
    again["run"]()
    np.testing.assert_array_equal(again.get_output(0).asnumpy(), scores)


def test_a_model_of_relay_with_its_parameters(tmp_path: Path) -> None:
    x, w = relay.var("x", shape=(2, 3)), relay.var("w")  # a type is not needed with a value
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    params = {"w": tvm.nd.array(weight), "unused": weight}
    data = np.ones((2, 3), np.float32)
    evaluate: Any = relay.create_executor("graph", mod, tvm.cpu(0), "llvm", params).evaluate()
    np.testing.assert_allclose(evaluate(tvm.nd.array(data)).numpy(), data @ weight.T)
    graph, lib, rest = relay.build(mod, "llvm", params=params)
    module = graph_executor.create(graph, lib, tvm.cpu())
    module.set_input(**rest)
    module.run(x=data)
    np.testing.assert_allclose(module.get_output(0), data @ weight.T)
    (tmp_path / "w.params").write_bytes(relay.save_param_dict(params))
    kept = relay.load_param_dict((tmp_path / "w.params").read_bytes())
    np.testing.assert_array_equal(kept["w"], weight)
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params), tvm.cpu())
    np.testing.assert_allclose(machine.invoke("main", data), data @ weight.T)


def test_an_expression_is_evaluated() -> None:
    a = relay.const(np.array([1.0, 4.0], np.float32))
    run: Any = relay.create_executor().evaluate(relay.Tuple([relay.sqrt(a), a + a]))
    roots, doubles = run()
    np.testing.assert_allclose(roots.numpy(), [1, 2])
    np.testing.assert_allclose(doubles.numpy(), [2, 8])


def test_what_is_missing_or_not_ours_is_told() -> None:
    x = relay.var("x", shape=(2,))
    lib = relay.build(relay.Function([x], x + x))
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    with pytest.raises(UnityError, match="nothing was run"):
        module.get_output(0)
    with pytest.raises(UnityError, match="inputs are not set: x"):
        module.run()
    with pytest.raises(UnityError, match="no input 'y'"):
        module.set_input("y", np.zeros(2))
    with pytest.raises(UnityError, match=r"astext\(show_meta_data=True\)"):
        relay.build(object())
    with pytest.raises(UnityError, match="there is no graph's JSON"):
        lib.get_graph_json()
    with pytest.raises(UnityError, match="must be exported anew"):
        tvm.runtime.load_module("lib.so")
    with pytest.raises(UnityError, match=r"torch\.onnx\.export"):
        relay.frontend.from_pytorch(None, [])
    with pytest.raises(UnityError, match="no device 'cuda'"):
        tvm.device("cuda", 0)


def test_networks_that_there_are_not() -> None:
    with pytest.raises(AttributeError, match=r"relay.testing.mobilenet is not there"):
        relay.testing.mobilenet.get_workload()


def test_tuners_do_nothing_and_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.exp(x))
    log = tmp_path / "tuned.log"
    log.write_text("")
    with caplog.at_level(logging.WARNING, "unity"):
        tasks = autotvm.task.extract_from_program(mod["main"], target="llvm", params={})
        option = autotvm.measure_option(builder=autotvm.LocalBuilder(), runner=None)
        for task in tasks:
            autotvm.tuner.XGBTuner(task, loss_type="rank").tune(1, measure_option=option)
        with autotvm.apply_history_best(str(log)), tvm.transform.PassContext(opt_level=3):
            assert relay.build(mod, "llvm").executable.kernels
        tasks, weights = auto_scheduler.extract_tasks(mod["main"], {}, "llvm")
        assert (tasks, weights) == ([], [])
    assert "autotvm.extract_from_program gives no tasks" in caplog.text
    assert "tuned.log is not applied (0 records of 0 tasks)" in caplog.text
    assert "resolve='measure'" in caplog.text


def test_the_networks_of_the_tutorials() -> None:
    mod, params = relay.testing.mlp.get_workload(2, image_shape=(1, 4, 4))
    lib = relay.build(mod, "llvm", params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(data=np.ones((2, 1, 4, 4), np.float32))
    np.testing.assert_allclose(module.get_output(0).numpy().sum(1), [1, 1], rtol=1e-5)
    for layers, convolutions in ((18, 20), (50, 53)):
        mod, params = relay.testing.resnet.get_workload(num_layers=layers)
        main = mod["main"]
        assert str(mod).count("nn.conv2d(") == convolutions
        assert set(params) == {p.name_hint for p in main.params[1:] if isinstance(p, relay.Var)}
    assert (
        str(relay.transform.InferType()(mod)["main"].body.checked_type)
        == "Tensor[(1, 1000), float32]"
    )
