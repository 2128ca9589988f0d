"""What TVM saves besides text: JSON, parameters, archives; and what holds no model."""

import gzip
import io
import json
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest

from tests.frontend.relay.saved import Array, Graph, parameters, tensor
from unity.errors import UnityError
from unity.frontend.relay import syntax
from unity.frontend.relay.read import read_relay
from unity.frontend.relay.saved.params import read_params
from unity.ir.dtype import dtype

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 3), float32], %w: Tensor[(2, 3), float32]) {
  nn.dense(%x, %w, units=2)
}
"""
WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)


def convolution() -> Graph:
    """A convolution, a batch norm's first result, and a relu used twice."""
    graph = Graph()
    x = graph.var("x", (1, 3, 8, 8))
    weight = graph.constant(np.ones((4, 3, 3, 3), np.float32))
    attrs = graph.add(
        "relay.attrs.Conv2DAttrs",
        strides=graph.ints(2, 2),
        padding=graph.ints(1, 1, 1, 1),
        dilation=graph.ints(1, 1),
        groups=1,
        channels=graph.add("IntImm", dtype="int32", value=4),
        kernel_size=graph.ints(3, 3),
        data_layout="NCHW",
        kernel_layout="OIHW",
        out_layout="",
        out_dtype="",
        auto_scheduler_rewritten_layout="",
    )
    conv = graph.call("nn.conv2d", x, weight, attrs=attrs)
    relu = graph.call("nn.relu", conv)
    both = graph.add("relay.Tuple", fields=graph.array(relu, relu))
    body = graph.add("relay.TupleGetItem", tuple_value=both, index=1)
    graph.module((x,), body)
    return graph


def test_json() -> None:
    graph = convolution()
    main = read_relay(graph.saved(len(graph.nodes) - 1).encode()).functions["main"]
    body = main.body
    assert isinstance(body, syntax.TupleGetItem)
    assert isinstance(body.tuple, syntax.Tuple)
    relu = body.tuple.fields[1]
    assert body.tuple.fields[0] is relu
    assert isinstance(relu, syntax.Call)
    conv = relu.arguments[0]
    assert isinstance(conv, syntax.Call)
    assert conv.arguments[0] is main.params[0]
    assert conv.attributes["strides"] == (2, 2)
    assert conv.attributes["channels"] == 4
    assert conv.attributes["groups"] == 1
    assert conv.attributes["out_dtype"] is None
    assert main.params[0].name == "x"


def test_json_of_older_versions() -> None:
    graph = Graph("0.6.0")
    graph.nodes += [
        {"type_key": "relay.Id", "attrs": {"name_hint": "x"}},
        {"type_key": "IntImm", "attrs": {"dtype": "int32", "value": "2"}},
        {"type_key": "Array", "data": [2, 2, 2]},
        {"type_key": "relay.TensorType", "attrs": {"shape": "3", "dtype": "float32"}},
        {"type_key": "relay.Var", "attrs": {"vid": "1", "type_annotation": "4"}},
        {"type_key": "relay.Op", "global_key": "nn.batch_matmul"},
        {"type_key": "Array", "data": [5, 5]},
        {"type_key": "relay.Call", "attrs": {"op": "6", "args": "7", "attrs": "0"}},
        {"type_key": "relay.GlobalVar", "attrs": {"name_hint": "main"}},
        {"type_key": "Array", "data": [5]},
        {"type_key": "Array"},
        {
            "type_key": "relay.Function",
            "attrs": {"params": "10", "body": "8", "ret_type": "0", "type_params": "11"},
        },
        {"type_key": "Map", "data": [9, 12]},
        {"type_key": "relay.Module", "attrs": {"functions": "13", "type_definitions": "0"}},
    ]
    main = read_relay(graph.saved(14).encode()).functions["main"]
    assert isinstance(main.body, syntax.Call)
    assert main.body.attributes["transpose_b"] is True  # all that 0.6 had
    assert main.params[0].type == syntax.TensorType((2, 2, 2), dtype("float32"))


def test_json_of_control_and_types() -> None:
    graph = Graph()
    x = graph.var("x", ())
    name = graph.text("runtime.String", "Box")
    header = graph.add("GlobalTypeVar", name_hint=name, kind=6)
    inputs = graph.array(graph.tensor_type(()))
    constructor = graph.add(
        "Constructor", name_hint=graph.text("runtime.String", "Full"), belong_to=header,
        inputs=inputs, tag=0,
    )  # fmt: skip
    made = graph.array(constructor)
    declared = graph.add(
        "relay.TypeData", header=header, type_vars=graph.array(), constructors=made
    )
    held = graph.var("held", ())
    pattern = graph.add(
        "relay.PatternConstructor",
        constructor=constructor,
        patterns=graph.array(graph.add("relay.PatternVar", var=held)),
    )
    clause = graph.add("relay.Clause", lhs=pattern, rhs=held)
    full = graph.add("relay.Call", op=constructor, args=graph.array(x), attrs=0)
    match = graph.add("relay.Match", data=full, clauses=graph.array(clause), complete=1)
    v = graph.var("v", ())
    body = graph.add("relay.Let", var=v, value=match, body=graph.call("add", v, x))
    root = graph.module((x,), body)
    entry = graph.nodes[root]["attrs"]
    assert isinstance(entry, dict)
    entry["type_definitions"] = str(graph.map(header, declared))
    module = read_relay(graph.saved(root).encode())
    assert module.constructor("Full")[0].name == "Box"
    let = module.functions["main"].body
    assert isinstance(let, syntax.Let)
    assert isinstance(let.value, syntax.Match)
    bound = let.value.clauses[0].pattern
    assert isinstance(bound, syntax.ConstructorPattern)
    assert isinstance(bound.fields[0], syntax.VarPattern)
    assert let.value.clauses[0].body is bound.fields[0].var


def test_deep_json_needs_no_stack() -> None:
    graph = Graph()
    top = x = graph.var("x", (4,))
    for _ in range(1200):
        top = graph.call("nn.relu", top)
    root = graph.module((x,), top)
    assert len(read_relay(graph.saved(root).encode()).functions["main"].params) == 1


def test_json_that_is_damaged_tells_the_object() -> None:
    graph = convolution()
    root = len(graph.nodes) - 1
    attributes = next(n for n in graph.nodes if n["type_key"] == "relay.attrs.Conv2DAttrs")
    fields = attributes["attrs"]
    assert isinstance(fields, dict)
    fields["groups"] = "many"
    with pytest.raises(UnityError, match=r"nodes\[\d+\] \(relay.attrs.Conv2DAttrs\).*'groups'"):
        read_relay(graph.saved(root).encode())


def test_parameters(tmp_path: Path) -> None:
    arrays: dict[str, Array] = {
        "w": WEIGHT,
        "flag": np.array(True),
        "half": np.ones((2, 0), np.float16),
        "ids": np.array([1, -2], np.int64),
    }
    path = tmp_path / "m.params"
    path.write_bytes(parameters(arrays))
    found = read_params(path)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert not found[name].flags.writeable
    module = read_relay(TEXT, {"w": WEIGHT})
    assert list(module.params) == ["w"]
    with pytest.raises(UnityError, match="main has no parameter 'flag'"):
        read_relay(TEXT, path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (struct.pack("<QQQ", 0xF7E58D4F05049CB7, 0, 2**60), "names needs"),
        (struct.pack("<QQQQ", 0xF7E58D4F05049CB7, 0, 1, 2**63), "a name needs"),
        (parameters({"w": WEIGHT})[:-1], "the tensor 'w' needs"),
        (parameters({"w": WEIGHT}) + b"x", "1 bytes too many"),
        (b"abcdefghijk", "no parameter dictionary"),
        (b"", "no parameter dictionary"),
        (
            parameters({"w": WEIGHT}).replace(struct.pack("<q", 24), struct.pack("<q", 2**60)),
            "can't have",
        ),
        (
            parameters({"w": WEIGHT}).replace(
                struct.pack("<iBB", 2, 2, 32), struct.pack("<iBB", 2**30, 2, 32)
            ),
            "dims",
        ),
    ],
)
def test_parameters_that_are_hostile(data: bytes, message: str) -> None:
    with pytest.raises(UnityError, match=message):
        read_params(data)


def archive(**members: bytes) -> bytes:
    """A tar; a name's double underscore is a slash, its single one a dot."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo("./" + name.replace("__", "/").replace("_", "."))
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return held.getvalue()


def test_archives() -> None:
    data = archive(
        metadata_json=b"{}",
        src__relay_txt=TEXT.encode(),
        parameters__default_params=parameters({"w": WEIGHT, "p0": WEIGHT}),
        codegen__host__src__lib0_c=b"int x;",
    )
    for form in (data, gzip.compress(data)):
        module = read_relay(form)
        np.testing.assert_array_equal(module.params["w"], WEIGHT)
        assert set(module.params) == {"w"}
        assert [i.name for i in module.ignored] == ["the parameter p0"]
    with pytest.raises(UnityError, match=r"no Relay text"):
        read_relay(archive(metadata_json=b"{}"))
    with pytest.raises(UnityError, match=r"cut short|damaged"):
        read_relay(data[: len(data) // 3])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x7fELF\x02\x01", "a compiled library"),
        (0xD225DE2F4214151D.to_bytes(8, "little") + b"\0" * 20, "bytecode"),
        (
            json.dumps(
                {
                    "nodes": [
                        {"op": "null", "name": "x"},
                        {"op": "tvm_op", "attrs": {"func_name": "fused_nn_conv2d_add"}},
                    ],
                    "arg_nodes": [0],
                    "heads": [[1, 0, 0]],
                    "node_row_ptr": [0, 1, 2],
                }
            ).encode(),
            "fused_nn_conv2d_add",
        ),
        (parameters({"w": WEIGHT}), "parameters alone"),
        (b"{}", "none of tvm.ir.save_json"),
        (b"\x00\x01\x02", "zeros"),
        (b"\xff\xfe\xfd", "no text"),
        (b"", "no Relay program"),
        (b'#[version = "0.0.5"]\n@main = primfn(a: handle) -> ()\n{}', "a kernel of TVM"),
        (b"@I.ir_module\nclass Module:\n    @T.prim_func\n    def main(): pass", "TVMScript"),
    ],
)
def test_files_without_a_model(data: bytes, message: str) -> None:
    with pytest.raises(UnityError, match=message) as caught:
        read_relay(data)
    if "compiled" in message or "fused" in message:
        assert "mod.astext(show_meta_data=True)" in str(caught.value)


def test_a_tensor_is_a_view_of_what_was_read() -> None:
    data = parameters({"w": WEIGHT})
    found = read_params(data)["w"]
    assert found.base is not None
    assert len(tensor(WEIGHT)) < len(data)
