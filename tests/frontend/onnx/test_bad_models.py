"""Damaged, ill-formed and hostile models: each a clear error that names what is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from unity.errors import UnityError, UnsupportedError
from unity.frontend.onnx import from_onnx
from unity.ir.dtype import Array

from .programs import model

GOOD = "g (float[n, 4] x) => (float[a, b] y) { h = Add(x, w) y = MatMul(h, w2) }"


def good() -> onnx.ModelProto:
    weights: dict[str, Array] = {"w": np.ones(4, np.float32), "w2": np.ones((4, 3), np.float32)}
    return model(GOOD, weights=weights)


def change(edit: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    proto = good()
    edit(proto)
    return proto


def weight(proto: onnx.ModelProto) -> onnx.TensorProto:
    found: onnx.TensorProto = proto.graph.initializer[0]
    return found


def declare_more(proto: onnx.ModelProto) -> None:
    weight(proto).dims[0] = 5


def declare_huge(proto: onnx.ModelProto) -> None:
    weight(proto).ClearField("dims")
    weight(proto).dims.extend([2**40, 2**40])


def declare_negative(proto: onnx.ModelProto) -> None:
    weight(proto).dims[0] = -4


def typed_too_short(proto: onnx.ModelProto) -> None:
    weight(proto).ClearField("raw_data")
    weight(proto).float_data.extend([1.0, 2.0])


def cycle(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].input[1] = "y"


def reads_nothing(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].input[1] = "nowhere"


def made_twice(proto: onnx.ModelProto) -> None:
    proto.graph.node[1].output[0] = "h"


def input_twice(proto: onnx.ModelProto) -> None:
    proto.graph.input.append(proto.graph.input[0])


def no_output(proto: onnx.ModelProto) -> None:
    proto.graph.output[0].name = "z"


def no_opset(proto: onnx.ModelProto) -> None:
    del proto.opset_import[:]


def wrong_inner(proto: onnx.ModelProto) -> None:
    proto.graph.initializer[1].dims[:] = [3, 4]


def wrong_dtype(proto: onnx.ModelProto) -> None:
    weight(proto).CopyFrom(onnx.numpy_helper.from_array(np.ones(4, np.int64), "w"))


def missing_operand(proto: onnx.ModelProto) -> None:
    del proto.graph.node[0].input[1]


def no_such_operator(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].CopyFrom(helper.make_node("Gelu", ["x"], ["h"]))


def wrong_attribute(proto: onnx.ModelProto) -> None:
    proto.graph.node[1].CopyFrom(helper.make_node("Concat", ["h", "h"], ["y"], axis="one"))


def axis_out_of_range(proto: onnx.ModelProto) -> None:
    proto.graph.node[1].CopyFrom(helper.make_node("Concat", ["h", "h"], ["y"], axis=2))


def index_out_of_range(proto: onnx.ModelProto) -> None:
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray([4]), "i"))
    proto.graph.node[1].CopyFrom(helper.make_node("Gather", ["h", "i"], ["y"], axis=1))


def declared_other_dtype(proto: onnx.ModelProto) -> None:
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE


def declared_other_extent(proto: onnx.ModelProto) -> None:
    proto.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 7


def declared_other_rank(proto: onnx.ModelProto) -> None:
    del proto.graph.output[0].type.tensor_type.shape.dim[1]


def external(location: str) -> Callable[[onnx.ModelProto], None]:
    def edit(proto: onnx.ModelProto) -> None:
        set_external_data(weight(proto), location)
        weight(proto).ClearField("raw_data")

    return edit


CASES: list[tuple[Callable[[onnx.ModelProto], object], str]] = [
    (declare_more, "'w' declares float32[5], which is 20 bytes, but holds 16"),
    (declare_huge, "but holds 16"),
    (declare_negative, "'w' declares the shape (-4,)"),
    (typed_too_short, "'w' declares the shape (4,), but holds 2 elements"),
    (cycle, "the graph has a cycle: node 'h' (Add)"),
    (reads_nothing, "node 'h' (Add) reads 'nowhere', which nothing makes"),
    (made_twice, "two values are named 'h'"),
    (input_twice, "two values are named 'x'"),
    (no_output, "the output 'z' is made by nothing"),
    (no_opset, "imports no opset"),
    (wrong_inner, "node 'y' (MatMul): matmul: the inner dims of float32(n, 4) and float32(3, 4)"),
    (wrong_dtype, "node 'h' (Add): add: operands must have one dtype, got float32, int64"),
    (missing_operand, "node 'h' (Add): has 1 inputs, but its operator takes 2"),
    (no_such_operator, "node 'h' (Gelu): opset 18 has no such operator"),
    (wrong_attribute, "node 'y' (Concat): the attribute 'axis' must be of type INT"),
    (axis_out_of_range, "node 'y' (Concat): axis 2 is out of range for rank 2"),
    (index_out_of_range, "node 'y' (Gather): an index is out of range for the extent 4"),
    (declared_other_dtype, "the output 'y' is float32, declared as float64"),
    (declared_other_extent, "the output 'y' has extent 3 at axis 1, declared as 7"),
    (external("w.bin"), "but the model was not read from a folder"),
]


def test_the_model_they_are_made_from_is_good() -> None:
    from_onnx(good())


def test_a_wrong_rank_declared_of_an_output_is_let_pass() -> None:
    # Published models have it, and onnxruntime runs them with a warning.
    assert from_onnx(change(declared_other_rank)).graph_functions()


@pytest.mark.parametrize(("edit", "said"), CASES, ids=[said[:40] for _, said in CASES])
def test_an_ill_formed_model_is_refused(
    edit: Callable[[onnx.ModelProto], object], said: str
) -> None:
    with pytest.raises(UnityError) as caught:
        from_onnx(change(edit))
    assert said in caught.value.message


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.6, 0.9, 0.999])
def test_a_file_cut_short_is_refused(fraction: float, tmp_path: Path) -> None:
    data = good().SerializeToString()
    path = tmp_path / "short.onnx"
    path.write_bytes(data[: int(len(data) * fraction)])
    with pytest.raises(UnityError, match=r"short\.onnx"):
        from_onnx(path)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.onnx"
    path.write_text("these are not the bytes you are looking for\n" * 9)
    with pytest.raises(UnityError, match=r"notes\.onnx is no ONNX model"):
        from_onnx(path)
    with pytest.raises(UnityError, match=r"can't read .*missing"):
        from_onnx(tmp_path / "missing.onnx")


def test_flipped_bytes_never_do_anything_but_raise_our_error() -> None:
    """Fuzzing: a damaged model imports or is refused; it never crashes or escapes otherwise."""
    data = bytearray(good().SerializeToString())
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(data)
        for at in rng.integers(0, len(data), int(rng.integers(1, 4))):
            damaged[at] = int(rng.integers(0, 256))
        with suppress(UnityError):
            from_onnx(bytes(damaged))


def stored(tmp_path: Path, location: str) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    path = folder / "m.onnx"
    path.write_bytes(change(external(location)).SerializeToString())
    return path


def test_external_data_is_read_beside_the_model(tmp_path: Path) -> None:
    path = stored(tmp_path, "w.bin")
    path.with_name("w.bin").write_bytes(np.ones(4, np.float32).tobytes())
    from_onnx(path)


@pytest.mark.parametrize(
    "location", ["../secret.bin", "/etc/hostname", "sub/../../secret.bin", "link.bin", "away/x"]
)
def test_external_data_may_not_leave_the_folder(location: str, tmp_path: Path) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(16))
    path = stored(tmp_path, location)
    os.symlink(tmp_path / "secret.bin", path.with_name("link.bin"))
    os.symlink(tmp_path, path.with_name("away"))
    with pytest.raises(UnityError, match="is outside the model's folder"):
        from_onnx(path)


def test_external_data_that_is_too_short_or_missing_is_refused(tmp_path: Path) -> None:
    path = stored(tmp_path, "w.bin")
    with pytest.raises(UnityError, match=r"the external data file 'w\.bin' is missing"):
        from_onnx(path)
    path.with_name("w.bin").write_bytes(bytes(12))
    with pytest.raises(UnityError, match=r"needs the bytes 0 to 16 of 'w\.bin', which has 12"):
        from_onnx(path)


def test_every_missing_operator_is_reported_at_once() -> None:
    proto = model(
        """
        g (float[n, 4] x) => (float[a, b] y) {
            h = NoSuchOperator(x)
            i = com.example.Thing(h)
            j = Relu(i)
            y = com.example.Other(j)
        }"""
    )
    proto.opset_import.append(helper.make_opsetid("com.example", 3))
    with pytest.raises(UnsupportedError) as caught:
        from_onnx(proto)
    assert caught.value.gaps == (
        "node 'h' (NoSuchOperator), domain ai.onnx, opset 18",
        "node 'i' (Thing), domain com.example, opset 3",
        "node 'y' (Other), domain com.example, opset 3",
    )


def test_every_behaviour_that_is_missing_is_reported_at_once() -> None:
    proto = model(
        """
        g (float[1, 4, 4, 4] x) => (float[a, b, c, d] y)
        <int64[8] p = {0, 0, 0, 0, 0, 0, 0, 0}> {
            h = LpPool<kernel_shape=[2, 2], ceil_mode=1>(x)
            i = Relu<speed=3>(h)
            t = Pad<mode="mirror">(x, p)
            y = Add(i, t)
        }"""
    )
    with pytest.raises(UnsupportedError) as caught:
        from_onnx(proto)
    assert caught.value.gaps == (
        "node 'h' (LpPool), domain ai.onnx, opset 18: ceil_mode",
        "node 'i' (Relu), domain ai.onnx, opset 18: the attribute speed",
        "node 't' (Pad), domain ai.onnx, opset 18: mode 'mirror'",
    )


def test_an_attribute_that_is_not_known_is_a_gap_not_ignored() -> None:
    proto = model("g (float[n] x) => (float[n] y) { y = Relu<speed=3>(x) }")
    with pytest.raises(UnsupportedError, match="the attribute speed"):
        from_onnx(proto)


def test_an_element_type_that_unity_lacks() -> None:
    proto = model("g (float[n] x) => (float[n] y) { y = Identity(x) }")
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.COMPLEX64
    with pytest.raises(UnsupportedError, match="the element type COMPLEX64"):
        from_onnx(proto)


def test_strings_that_an_output_calls_numbers() -> None:
    proto = model("g (float[n] x) => (float[n] y) { y = Identity(x) }")
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    with pytest.raises(UnityError, match="the output 'y' is strings, declared as another type"):
        from_onnx(proto)


def calling(bodies: list[list[str]]) -> onnx.ModelProto:
    """A model with functions f0, f1, ...: each calls, one after another, what is listed."""
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    functions: list[onnx.FunctionProto] = []
    for n, body in enumerate(bodies):
        names = ["a", *(f"v{k}" for k in range(1, len(body))), "z"]
        nodes = [
            helper.make_node(op, [names[k]], [names[k + 1]], domain="own" if op[0] == "f" else "")
            for k, op in enumerate(body)
        ]
        functions.append(helper.make_function("own", f"f{n}", ["a"], ["z"], nodes, opsets))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(f"f{len(bodies) - 1}", ["x"], ["y"], "call", domain="own")],
        "g",
        [value("x", TensorProto.FLOAT, ["n"])],
        [value("y", TensorProto.FLOAT, ["n"])],
    )
    return helper.make_model(graph, functions=functions, opset_imports=opsets)


def test_functions_are_written_out() -> None:
    main = from_onnx(calling([["Relu", "Neg"], ["f0", "f0"]]))["main"]
    assert str(main).count("nn.relu") == 2


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        ([["Relu"], *([f"f{n}", f"f{n}"] for n in range(40))], "has 1099511627776 nodes"),
        ([["Relu"], *([f"f{n}"] for n in range(300))], "more than 100 deep"),
        ([["f1"], ["f0"]], r"'z' \(f1\) calls its own function: f1 -> f0 -> f1"),
    ],
)
def test_functions_that_have_no_end_are_refused(bodies: list[list[str]], message: str) -> None:
    with pytest.raises(UnityError, match=message):
        from_onnx(calling(bodies))


def two_fields(proto: onnx.ModelProto) -> None:
    weight(proto).float_data.extend([1.0, 2.0, 3.0, 4.0])


def field_of_another_type(proto: onnx.ModelProto) -> None:
    weight(proto).ClearField("raw_data")
    weight(proto).int64_data.extend([1, 2, 3, 4])


def negative_input(proto: onnx.ModelProto) -> None:
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value = -4


def of_the_future(proto: onnx.ModelProto) -> None:
    proto.ir_version = 1000


def insert(proto: onnx.ModelProto, op: str, *inputs: str, **attributes: object) -> onnx.NodeProto:
    node = helper.make_node(op, inputs, ["inserted"])
    node.attribute.extend(helper.make_attribute(k, v) for k, v in attributes.items())
    proto.graph.node.insert(0, node)
    found: onnx.NodeProto = proto.graph.node[0]
    return found


def initialize(proto: onnx.ModelProto, name: str, array: Array) -> None:
    proto.graph.initializer.append(numpy_helper.from_array(array, name))


def attribute_twice(proto: onnx.ModelProto) -> None:
    node = insert(proto, "Concat", "x", "x", axis=0)
    node.attribute.append(node.attribute[0])


def concat_of_other_shapes(proto: onnx.ModelProto) -> None:
    insert(proto, "Concat", "w2", "w3", axis=0)
    initialize(proto, "w3", np.ones((4, 2), np.float32))


def choice(proto: onnx.ModelProto, kind: int, *results: str) -> onnx.NodeProto:
    infos = [helper.make_tensor_value_info(r, kind, None) for r in results]
    nodes = [helper.make_node("Relu", ["x"], [r]) for r in results]
    branch = helper.make_graph(nodes, "branch", [], infos)
    initialize(proto, "yes", np.array(True))
    return insert(proto, "If", "yes", then_branch=branch, else_branch=branch)


def no_graph_in_its_attribute(proto: onnx.ModelProto) -> None:
    choice(proto, TensorProto.FLOAT, "p").attribute[0].type = onnx.AttributeProto.INT


def no_bool(proto: onnx.ModelProto) -> None:
    choice(proto, TensorProto.FLOAT, "p").input[0] = "one"
    initialize(proto, "one", np.array(1))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (two_fields, "the initializer 'w' holds float_data beside or in place of raw_data"),
        (field_of_another_type, "holds int64_data beside or in place of float_data"),
        (negative_input, "the input 'x' declares the extent -4 at axis 1"),
        (of_the_future, "is of version 1000 of ONNX's format"),
        (attribute_twice, "has an attribute twice"),
        (lambda m: insert(m, "Concat", "x", "x", axis=0.5), "'axis' must be of type INT"),
        (lambda m: insert(m, "Concat", "x", "x"), "lacks the attribute 'axis'"),
        (
            lambda m: insert(m, "HardSigmoid", "x", gamma=1.0),
            "HardSigmoid.*the attribute gamma",
        ),
        (concat_of_other_shapes, "tensor 1 along axis 1: got 2, expected 3"),
        (lambda m: insert(m, "Gemm", "w", "w2"), "ranks 1 and 2, not 2"),
        (lambda m: choice(m, TensorProto.FLOAT, "p", "q"), "has 1 outputs, a branch of it 2"),
        (lambda m: choice(m, TensorProto.INT64, "p"), "'p' of a graph.* declared as int64"),
        (no_graph_in_its_attribute, "the attribute '(then|else)_branch' must be of type GRAPH"),
        (no_bool, "its condition must be bool, got int64"),
    ],
)
def test_what_no_standard_allows_is_refused(
    edit: Callable[[onnx.ModelProto], object], message: str
) -> None:
    with pytest.raises(UnityError, match=message):
        from_onnx(change(edit))


@pytest.mark.parametrize("location", [".", "folder", "./folder/.."])
def test_external_data_that_is_a_folder_is_refused(tmp_path: Path, location: str) -> None:
    proto = good()
    set_external_data(weight(proto), location, 0, 16)
    weight(proto).ClearField("raw_data")
    (tmp_path / "folder").mkdir()
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(UnityError, match="external data"):
        from_onnx(path)


def test_gaps_of_all_kinds_are_told_at_once() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "first", slope=1.0),
        helper.make_node("Swish2", ["a"], ["b"], "second", domain="com.acme"),
        helper.make_node("Softmax", ["b"], ["c"], "third", temperature=2.0),
        helper.make_node("Nothing", ["x"], ["d"], "fourth"),
        helper.make_node("Add", ["c", "d"], ["y"], "fifth"),
    ]
    value = helper.make_tensor_value_info
    x, y = value("x", TensorProto.FLOAT, [2, 3]), value("y", TensorProto.FLOAT, [2, 3])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 1)]
    proto = helper.make_model(
        helper.make_graph(nodes, "all", [x], [y]), opset_imports=opsets, ir_version=8
    )
    with pytest.raises(UnsupportedError) as caught:
        from_onnx(proto)
    assert [gap.partition(",")[0] for gap in caught.value.gaps] == [
        "node 'second' (Swish2)",
        "node 'fourth' (Nothing)",
        "node 'first' (Relu)",
        "node 'third' (Softmax)",
    ]
    assert caught.value.gaps[2].endswith("the attribute slope")
    assert caught.value.gaps[3].endswith("the attribute temperature")
