"""Models that are broken, hostile or beyond us: a clear error, never a crash or a wrong answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import unity

F, I = TensorProto.FLOAT, TensorProto.INT64  # noqa: E741
Value = tuple[str, int, list[int | str] | None]


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[Value],
    outputs: list[Value],
    initializers: list[onnx.TensorProto] | None = None,
    opset: int = 17,
    domain: str = "",
) -> onnx.ModelProto:
    """A model as a careless exporter would write it: nothing is checked."""
    graph = helper.make_graph(
        nodes,
        "bad",
        [helper.make_tensor_value_info(*v) for v in inputs],
        [helper.make_tensor_value_info(*v) for v in outputs],
        initializers or [],
    )
    imports = [helper.make_opsetid("", opset)]
    if domain:
        imports.append(helper.make_opsetid(domain, 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def node(kind: str, inputs: list[str], outputs: list[str], **attrs: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, outputs, f"the_{kind.lower()}", **attrs)


X: Value = ("x", F, [2, 3])
Y: Value = ("y", F, [2, 3])


def external(location: str, length: int = 24) -> onnx.ModelProto:
    weight = TensorProto(name="w", data_type=F, dims=[2, 3])
    weight.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", str(length))):
        entry = weight.external_data.add()
        entry.key, entry.value = key, value
    return model([node("Add", ["x", "w"], ["y"])], [X], [Y], [weight])


def huge_initializer() -> onnx.ModelProto:
    weight = TensorProto(name="w", data_type=F, dims=[1 << 40, 1 << 20], raw_data=b"\0" * 16)
    return model([node("Add", ["x", "w"], ["y"])], [X], [Y], [weight])


def short_initializer() -> onnx.ModelProto:
    weight = TensorProto(name="w", data_type=F, dims=[2, 3], raw_data=b"\0" * 20)
    return model([node("Add", ["x", "w"], ["y"])], [X], [Y], [weight])


def duplicate_output() -> onnx.ModelProto:
    return model([node("Relu", ["x"], ["y"]), node("Exp", ["x"], ["y"])], [X], [Y])


def constant(name: str, values: list[int]) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


BROKEN: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "cycle": (
        lambda: model(
            [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])], [X], [("b", *Y[1:])]
        ),
        "cycle.*the_add.*the_relu",
    ),
    "an input nobody makes": (
        lambda: model([node("Add", ["x", "ghost"], ["y"])], [X], [Y]),
        "ghost",
    ),
    "an output nobody makes": (
        lambda: model([node("Relu", ["x"], ["z"])], [X], [Y]),
        r"\by\b",
    ),
    "two nodes make one value": (duplicate_output, r"\by\b"),
    "mixed dtypes": (
        lambda: model([node("Add", ["x", "i"], ["y"])], [X, ("i", I, [2, 3])], [Y]),
        "the_add|dtype|type",
    ),
    "shapes that do not broadcast": (
        lambda: model([node("Add", ["x", "b"], ["y"])], [X, ("b", F, [4])], [Y]),
        r"the_add|\[2, 3\]|\(2, 3\)",
    ),
    "a matmul that does not fit": (
        lambda: model([node("MatMul", ["x", "b"], ["y"])], [X, ("b", F, [4, 3])], [Y]),
        r"the_matmul|matmul",
    ),
    "a reshape of another size": (
        lambda: model([node("Reshape", ["x", "s"], ["y"])], [X], [Y], [constant("s", [7, 2])]),
        "the_reshape|reshape",
    ),
    "an axis out of range": (
        lambda: model([node("Softmax", ["x"], ["y"], axis=5)], [X], [Y]),
        "axis",
    ),
    "a permutation that is none": (
        lambda: model([node("Transpose", ["x"], ["y"], perm=[0, 0])], [X], [Y]),
        "perm|the_transpose",
    ),
    "a convolution of other channels": (
        lambda: model(
            [node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3])],
            [("x", F, [1, 3, 8, 8]), ("w", F, [4, 5, 3, 3])],
            [("y", F, [1, 4, 6, 6])],
        ),
        "channel|the_conv",
    ),
    "too few inputs": (lambda: model([node("Add", ["x"], ["y"])], [X], [Y]), "the_add|Add"),
    "an initializer larger than its data": (short_initializer, r"\bw\b"),
    "a shape beyond all memory": (huge_initializer, r"\bw\b"),
    "a declared input beyond all memory": (
        lambda: model(
            [node("Relu", ["x"], ["y"])], [("x", F, [1 << 40, 1 << 30])], [("y", F, None)]
        ),
        r"\bx\b",
    ),
    "an output of another type than declared": (
        lambda: model([node("Relu", ["x"], ["y"])], [X], [("y", I, [2, 3])]),
        r"\by\b",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_model_is_refused(case: str) -> None:
    build, names = BROKEN[case]
    with pytest.raises(unity.UnityError, match=names):
        unity.load(build())


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(unity.UnityError, match=r"nowhere\.onnx"):
        unity.load(tmp_path / "nowhere.onnx")


@pytest.mark.parametrize("content", [b"", b"not a model at all", b"\x08\x08\x12\xff\xff"])
def test_a_file_that_is_no_model(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(unity.UnityError, match=r"model\.onnx"):
        unity.load(path)


def test_a_truncated_file(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.ones((100, 100), np.float32), "w")
    good = model(
        [node("MatMul", ["x", "w"], ["y"])], [("x", F, [1, 100])], [("y", F, [1, 100])], [weight]
    )
    whole = good.SerializeToString()
    path = tmp_path / "model.onnx"
    for keep in (len(whole) // 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:keep])
        with pytest.raises(unity.UnityError):
            unity.load(path)


@pytest.mark.parametrize(
    "location", ["../secret.bin", "/etc/passwd", "link.bin", "sub/../../secret.bin"]
)
def test_external_data_stays_in_the_folder(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret.bin").write_bytes(b"\0" * 24)
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    path = folder / "model.onnx"
    path.write_bytes(external(location).SerializeToString())
    with pytest.raises(unity.UnityError, match=r"\bw\b|folder|outside"):
        unity.load(path)


def test_external_data_that_is_missing_or_short(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(external("w.bin").SerializeToString())
    with pytest.raises(unity.UnityError, match=r"w\.bin"):
        unity.load(path)
    (tmp_path / "w.bin").write_bytes(b"\0" * 8)
    with pytest.raises(unity.UnityError, match=r"\bw\b|w\.bin"):
        unity.load(path)


def test_external_data_beside_the_model_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(external("w.bin").SerializeToString())
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    (tmp_path / "w.bin").write_bytes(values.tobytes())
    got = unity.compile(path)(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(got, values + 1)


def test_every_gap_is_listed_at_once() -> None:
    bad = model(
        [
            node("Frobnicate", ["x"], ["a"]),
            helper.make_node("Grid", ["a"], ["b"], "the_grid", domain="com.example"),
            node("Relu", ["b"], ["y"]),
        ],
        [X],
        [Y],
        domain="com.example",
    )
    with pytest.raises(unity.UnsupportedError) as caught:
        unity.load(bad)
    assert len(caught.value.gaps) == 2
    assert "the_frobnicate" in caught.value.gaps[0]
    assert "17" in caught.value.gaps[0]
    assert "com.example" in caught.value.gaps[1]
