"""Loop: counted, ended early, with outputs of each step; as onnxruntime computes them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import unity
from unity.errors import UnityError, UnsupportedError
from unity.frontend.onnx import from_onnx
from unity.interpreter import interpret
from unity.ir.graph import Scan, While
from unity.ir.visit import walk_bindings
from unity.runtime.native import supported

from .programs import main_of

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Info = onnx.ValueInfoProto


def info(name: str, kind: int, *shape: int | str) -> Info:
    return helper.make_tensor_value_info(name, kind, list(shape))


def number(name: str, value: object) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(value), name)


def body(condition: str, stacked: bool = True, grows: bool = False) -> onnx.GraphProto:
    """``total = total * w + step; gives total + step``; the condition is one of several."""
    nodes = [
        helper.make_node("Cast", ["i"], ["step"], to=FLOAT),
        helper.make_node("Mul", ["total", "w"], ["scaled"]),
        helper.make_node("Add", ["scaled", "step"], ["next"]),
        helper.make_node("Add", ["next", "step"], ["given"]),
        helper.make_node("ReduceSum", ["next"], ["sum"], keepdims=0),
        helper.make_node("Less", ["sum", "limit"], ["small"]),
        helper.make_node("Identity", ["on"], ["same"]),
        helper.make_node("Identity", ["yes"], ["always"]),
        helper.make_node("Cast", ["yes"], ["cast"], to=BOOL),
        helper.make_node("And", ["small", "on"], ["both"]),
    ]
    after = "next"
    if grows:
        nodes.append(helper.make_node("Concat", ["next", "next"], ["twice"], axis=0))
        after = "twice"
    outputs = [info(condition, BOOL), info(after, FLOAT, 3)]
    outputs += [info("given", FLOAT, 3)] if stacked else []
    inputs = [info("i", INT), info("on", BOOL), info("total", FLOAT, 3)]
    return helper.make_graph(nodes, "body", inputs, outputs, [number("yes", True)])


def model(
    steps: str, start: str, within: onnx.GraphProto, kind: int | None = None
) -> onnx.ModelProto:
    """A loop from `init` with a number of steps and a condition of some names."""
    stacked = len(within.output) == 3
    results = ["last", "all"] if stacked else ["last"]
    nodes = [
        helper.make_node("Shape", ["x"], ["length"]),
        helper.make_node("Squeeze", ["length"], ["size"]),
        helper.make_node("Loop", [steps, start, "init"], results, body=within),
    ]
    inputs = [info("init", FLOAT, 3), info("x", FLOAT, "n"), info("times", INT), info("go", BOOL)]
    constants = [
        number("w", np.asarray([1, 0.5, 2], np.float32)),
        number("limit", np.float32(40)),
        number("three", np.int64(3)),
        number("true", True),
    ]
    outputs = [helper.make_tensor_value_info(n, FLOAT, None) for n in results]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check(of: onnx.ModelProto, times: int, go: bool, n: int) -> None:
    """Compiled and interpreted as onnxruntime has it."""
    feeds = {
        "init": np.asarray([1, 2, 3], np.float32),
        "x": np.zeros(n, np.float32),
        "times": np.asarray(times, np.int64),
        "go": np.asarray(go),
    }
    want = ort.InferenceSession(of.SerializeToString()).run(None, feeds)
    module = from_onnx(of)
    names = [p.name for p in main_of(module).params]
    found = interpret(module, "main", [feeds[name] for name in names])
    results = found if isinstance(found, tuple) else (found,)
    for ours in (unity.compile(of).run(feeds).values(), results):
        for w, g in zip(want, ours, strict=True):
            assert isinstance(g, np.ndarray)
            np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), rtol=1e-6)


def loops(of: onnx.ModelProto) -> list[type[object]]:
    """What kind of loop a model becomes."""
    values = [b.value for b in walk_bindings(main_of(from_onnx(of)))]
    return [type(v) for v in values if isinstance(v, Scan | While)]


@pytest.mark.parametrize("steps", ["three", "size"])
@pytest.mark.parametrize("start", ["", "true"])
@pytest.mark.parametrize("condition", ["on", "same", "yes", "always", "cast"])
def test_a_number_of_steps_that_is_a_size_makes_a_scan(
    steps: str, start: str, condition: str
) -> None:
    loop = model(steps, start, body(condition))
    assert loops(loop) == [Scan]
    check(loop, 2, True, 5)


@pytest.mark.parametrize("n", [0, 1])
def test_few_steps(n: int) -> None:
    check(model("size", "", body("on")), 2, True, n)


@pytest.mark.rotated(2)
@pytest.mark.parametrize(
    ("steps", "start", "condition"),
    [
        ("times", "", "always"),
        ("times", "go", "small"),
        ("times", "true", "both"),
        ("three", "go", "on"),
        ("size", "true", "small"),
        ("", "true", "small"),
    ],
)
def test_others_are_while_loops(steps: str, start: str, condition: str) -> None:
    loop = model(steps, start, body(condition, stacked=False))
    assert loops(loop) == [While]
    for times, go in ((0, True), (4, True), (20, True), (4, False)):
        check(loop, times, go, 6)


@pytest.mark.parametrize("start", ["", "go"])
def test_outputs_of_a_number_of_steps_known_only_at_run_time(start: str) -> None:
    of = model("times", start, body("on"))
    session = ort.InferenceSession(of.SerializeToString())
    module = from_onnx(of)
    init, x = np.ones(3, np.float32), np.zeros(2, np.float32)
    for times, go in ((4, True), (0, True), (3, False)):
        given = {"init": init, "x": x, "times": np.asarray(times), "go": np.asarray(go)}
        wanted = session.run(None, given)
        found = interpret(module, "main", list(given.values()))
        assert isinstance(found, tuple)
        for got, right in zip(found, wanted, strict=True):
            assert isinstance(got, np.ndarray)
            np.testing.assert_array_equal(got, np.asarray(right))


@pytest.mark.parametrize("times", [0, 1, 20])
def test_what_the_steps_give_of_a_loop_that_ends_early(times: int) -> None:
    of = model("times", "", body("small"))
    init, x = np.ones(3, np.float32), np.zeros(2, np.float32)
    feeds = {"init": init, "x": x, "times": np.asarray(times), "go": np.asarray(True)}
    names = [i.name for i in of.graph.input]
    given = {n: feeds[n] for n in names}
    wanted = ort.InferenceSession(of.SerializeToString()).run(None, given)
    found = interpret(from_onnx(of), "main", list(given.values()))
    assert isinstance(found, tuple)
    for got, right in zip(found, wanted, strict=True):
        assert isinstance(got, np.ndarray)
        np.testing.assert_array_equal(got, np.asarray(right), strict=True)


ROWS = """<ir_version: 8, opset_import: ["" : 18]>
g (float[m, w] x, int64 n, bool t) => (float[w] s, float[k, w] y, bool[k] z, int64[k, 1] q) {
  zero = Constant<value_float = 0.0>()
  shape = Shape<start = 1>(x)
  init = Expand(zero, shape)
  s, y, z, q = Loop(STEPS, t, init) <body = b (int64 i, bool c, float[w] before)
    => (bool go, float[w] after, float[w] row, bool last, int64[1] number) {
    row = Gather<axis = 0>(x, i)
    after = Add(before, row)
    sum = ReduceSum<keepdims = 0>(row)
    limit = Constant<value_float = 20.0>()
    go = Less(sum, limit)
    last = Not(go)
    one = Constant<value_ints = [1]>()
    number = Mul(i, one)
  }>
}"""


@pytest.mark.parametrize("steps", ["n", ""])
def test_steps_of_a_loop_that_may_end_early_are_stacked_by_runs(steps: str) -> None:
    """Of several lengths, with a bound that no memory would hold."""
    of = onnx.parser.parse_model(ROWS.replace("STEPS", steps))
    module, session = from_onnx(of), ort.InferenceSession(of.SerializeToString())
    (loop,) = (b.value for b in walk_bindings(main_of(module)) if isinstance(b.value, While))
    assert any(isinstance(b.value, Scan) for block in loop.body.blocks for b in block.bindings)
    exe, most = unity.compile(of), np.iinfo(np.int64).max
    if supported():
        assert exe.native()["main"] == "native"
    cases = [(most, end) for end in (0, 1, 3, 4, 7, 8, 49)]
    if steps:
        cases += [(n, end) for n in (1, 4, 5, 50) for end in (2, 49)]
    for n, end in cases:
        x = np.random.default_rng(end).random((50, 8), np.float32)
        x[end] += 5
        feeds = {"x": x, "n": np.asarray(n), "t": np.asarray(True)}
        wanted = session.run(None, feeds)
        results: list[Iterable[object]] = [exe.run(feeds).values()]
        if end < 5:
            found = interpret(module, "main", [*feeds.values()])
            assert isinstance(found, tuple)
            results.append(found)
        for result in results:
            for got, right in zip(result, wanted, strict=True):
                np.testing.assert_array_equal(np.asarray(got), right, strict=True)


@pytest.mark.parametrize(("n", "t"), [(0, True), (-3, True), (9, False)])
def test_no_step_of_a_loop_that_may_end_early_gives_no_rows(n: int, t: bool) -> None:
    exe = unity.compile(onnx.parser.parse_model(ROWS.replace("STEPS", "n")))
    given = exe.run({"x": np.ones((5, 8), np.float32), "n": np.asarray(n), "t": np.asarray(t)})
    assert [np.shape(v) for v in given.values()] == [(8,), (0, 8), (0,), (0, 1)]


def test_what_is_missing_is_said() -> None:
    grows = r"node 'last' \(Loop\).*: the state 'total' whose shape changes from \(3,\) to \(6,\)"
    with pytest.raises(UnsupportedError, match=grows):
        from_onnx(model("three", "", body("on", grows=True)))


def greedy(ends: bool, extent: int | str) -> onnx.ModelProto:
    """Decoding: each step appends the best next id; it may end early, at the id 7."""
    rng = np.random.default_rng(1)
    nodes = [
        helper.make_node("Gather", ["table", "last"], ["row"]),
        helper.make_node("ArgMax", ["row"], ["best"], axis=-1, keepdims=0),
        helper.make_node("Unsqueeze", ["best", "one"], ["column"]),
        helper.make_node("Concat", ["ids", "column"], ["longer"], axis=1),
        helper.make_node("Equal", ["best", "seven"], ["is_end"]),
        helper.make_node("Not", ["is_end"], ["is_other"]),
        helper.make_node("Cast", ["is_other"], ["other"], to=INT),
        helper.make_node("ReduceMax", ["other"], ["any"], keepdims=0),
        helper.make_node("Cast", ["any"], ["on"], to=BOOL),
        helper.make_node("Identity", ["go"], ["same"]),
    ]
    inputs = [info("i", INT), info("go", BOOL), info("last", INT, "b"), info("ids", INT, "b", "t")]
    outputs = [info("on" if ends else "same", BOOL), info("best", INT, "b")]
    step = helper.make_graph(nodes, "step", inputs, [*outputs, info("longer", INT, "b", "t")])
    outer = [
        helper.make_node("Gather", ["prompt", "minus"], ["first"], axis=1),
        helper.make_node("Loop", ["most", "yes", "first", "prompt"], ["end", "out"], body=step),
        helper.make_node("Add", ["out", "one"], ["more"]),
    ]
    constants = [
        number("table", rng.standard_normal((20, 20)).astype(np.float32)),
        *(number(n, np.int64(v)) for n, v in (("seven", 7), ("most", 9), ("minus", -1))),
        number("one", np.array([1])),
        number("yes", True),
    ]
    found = [info("more", INT, "b", "all"), info("end", INT, "b")]
    graph = helper.make_graph(outer, "g", [info("prompt", INT, "b", extent)], found, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("extent", ["s", 3])
def test_a_state_that_grows_has_another_size_in_each_step(ends: bool, extent: int | str) -> None:
    of = greedy(ends, extent)
    assert loops(of) == [While]
    module, executable = from_onnx(of), unity.compile(of)
    session = ort.InferenceSession(of.SerializeToString())
    for rows in (1, 3):
        ids = np.random.default_rng(rows).integers(0, 20, (rows, 3))
        want = session.run(None, {"prompt": ids})
        interpreted = interpret(module, "main", [ids])
        assert isinstance(interpreted, tuple)
        for found in (list(executable.run({"prompt": ids}).values()), interpreted):
            for w, g in zip(want, found, strict=True):
                np.testing.assert_array_equal(np.asarray(g), w)


def test_a_loop_without_an_end_is_refused() -> None:
    with pytest.raises(UnityError, match="never ends"):
        from_onnx(model("", "", body("yes", stacked=False)))


GROWS = """
import resource
import numpy as np
from onnx import TensorProto, helper
import unity

def info(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, list(shape))

nodes = [helper.make_node("Concat", ["x", "x"], ["twice"], axis=0),
         helper.make_node("Identity", ["go"], ["same"])]
F, I, B = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
step = helper.make_graph(nodes, "step", [info("i", I), info("go", B), info("x", F, "k")],
                         [info("same", B), info("twice", F, "l")])
loop = helper.make_node("Loop", ["", "on", "first"], ["last"], body=step)
graph = helper.make_graph([loop], "g", [info("on", B), info("first", F, "n")],
                          [info("last", F, "m")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
executable = unity.compile(model)
x = np.ones(1 << 10, np.float32)
assert executable.run({"on": np.asarray(False), "first": x})["last"].shape == x.shape
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 29), -1))
try:
    executable.run({"on": np.asarray(True), "first": x})
except unity.UnityError as error:
    print(error.message)
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
assert executable.run({"on": np.asarray(False), "first": x})["last"].shape == x.shape
"""


@pytest.mark.rotated(1 / 4)
@pytest.mark.long("a process compiles, then doubles a tensor until memory ends")
@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_a_state_that_grows_for_ever_ends_where_memory_does() -> None:
    child = subprocess.run(
        [sys.executable, "-c", GROWS], capture_output=True, text=True, timeout=120, check=False
    )
    assert child.stdout.startswith("no memory for "), child.stdout + child.stderr
    assert child.returncode == 0, child.stderr
