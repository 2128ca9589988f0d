"""Where weights lie: large ones stay in the file, which executables then do without."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper

import unity
from unity import compiler
from unity.errors import UnityError
from unity.frontend.onnx import from_onnx, importer
from unity.frontend.onnx.reading import graphs
from unity.frontend.onnx.reading.outline import LEAST, OWN, outlined
from unity.ir.arrays.mapped import MappedFile, owner_of
from unity.ir.dtype import Array
from unity.ir.module import IRModule
from unity.ir.visit import walk_constants

from .programs import model

RNG = np.random.default_rng(0)
SHAPE = (40, 50)
WEIGHTS: dict[str, npt.NDArray[np.float32]] = {
    "w": RNG.standard_normal((30, 40)).astype(np.float32),
    "w2": RNG.standard_normal(SHAPE).astype(np.float32),
    "small": RNG.standard_normal(50).astype(np.float32),
}


def large() -> onnx.ModelProto:
    """A model with large weights as an initializer, in a node, and in a branch."""
    text = """
        g (float[n, 30] x, bool c) => (float[n, 50] y) {
            h = MatMul(x, w)
            i = MatMul(h, w2)
            j = Add(i, small)
            y = If(c) <then_branch = then () => (float[n, 50] p) { p = Identity(j) },
                       else_branch = other () => (float[n, 50] q) { q = Mul(j, k) }>
        }"""
    found = model(text, weights={n: WEIGHTS[n] for n in ("w", "small")})
    found.graph.node.insert(0, constant("w2", WEIGHTS["w2"]))
    branch = found.graph.node[-1].attribute[1].g
    branch.node.insert(0, constant("v", np.full((2000, 50), 3, np.float32)))
    branch.node.insert(1, helper.make_node("ReduceMax", ["v"], ["k"], keepdims=0))
    return found


def constant(name: str, data: Array) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(data))


def saved(folder: Path, proto: onnx.ModelProto | None = None) -> Path:
    path = folder / "model.onnx"
    path.write_bytes((proto or large()).SerializeToString())
    return path


def expected(x: npt.NDArray[np.float32], c: bool) -> npt.NDArray[np.floating[Any]]:
    y = x @ WEIGHTS["w"] @ WEIGHTS["w2"] + WEIGHTS["small"]
    return y if c else y * 3


def constants(module: IRModule) -> dict[str, Array]:
    found = (c for f in module.graph_functions().values() for c in walk_constants(f))
    return {c.name or "": c.data for c in found}


@contextmanager
def overwritten(path: Path) -> Iterator[None]:
    """A file written over and cut short: whoever reads it by its old map dies. Then as it was."""
    data = path.read_bytes()
    path.write_bytes(b"short")
    try:
        yield
    finally:
        path.write_bytes(data)


def is_mapped(array: Array) -> bool:
    return isinstance(owner_of(array), MappedFile)


def test_large_weights_of_a_file_are_mapped_and_small_ones_are_not(tmp_path: Path) -> None:
    found = constants(from_onnx(saved(tmp_path)))
    assert {n: is_mapped(found[n]) for n in ("w", "small")} == {"w": True, "small": False}
    assert any(is_mapped(a) for a in found.values() if a.shape == SHAPE)
    for name in ("w", "small"):
        np.testing.assert_array_equal(found[name], WEIGHTS[name])
    assert not found["w"].flags.writeable


def test_a_model_in_memory_gives_the_same_module(tmp_path: Path) -> None:
    path = saved(tmp_path)
    from_file = from_onnx(path)
    for source in (path.read_bytes(), large()):
        for name, array in constants(from_onnx(source)).items():
            assert not is_mapped(array)
            np.testing.assert_array_equal(array, constants(from_file)[name])


@pytest.mark.parametrize("kind", [np.float16, np.float64, np.int8, np.int64, np.uint16, np.bool_])
def test_each_type_of_element(kind: type[np.generic], tmp_path: Path) -> None:
    data = RNG.integers(0, 2, (70, 80)).astype(kind)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    text = f"g () => ({TensorProto.DataType.Name(code).lower()}[70, 80] y) {{ y = Identity(w) }}"
    found = constants(from_onnx(saved(tmp_path, model(text, weights={"w": data}))))["w"]
    np.testing.assert_array_equal(found, data)
    assert is_mapped(found)


def test_what_is_packed_in_half_bytes_is_read(tmp_path: Path) -> None:
    proto = model("g () => (int4[200, 100] y) { y = Identity(w) }", opset=21)
    data = RNG.integers(-8, 8, (200, 100))
    proto.graph.initializer.append(helper.make_tensor("w", TensorProto.INT4, data.shape, data))
    numpy_helper.to_array(proto.graph.initializer[0])
    weight = proto.graph.initializer[0]
    packed = (data.reshape(-1, 2) & 15) @ np.asarray([1, 16])
    weight.ClearField("int32_data")
    weight.raw_data = packed.astype(np.uint8).tobytes()
    found = constants(from_onnx(saved(tmp_path, proto)))["w"]
    np.testing.assert_array_equal(found.astype(np.int64), data)


def test_elements_in_fields_of_their_type_are_read(tmp_path: Path) -> None:
    proto = model("g (float[40, 50] x) => (float[40, 50] y) { y = Add(x, w2) }")
    values = WEIGHTS["w2"].reshape(-1).tolist()
    proto.graph.initializer.append(helper.make_tensor("w2", TensorProto.FLOAT, SHAPE, values))
    np.testing.assert_array_equal(constants(from_onnx(saved(tmp_path, proto)))["w2"], WEIGHTS["w2"])


@pytest.mark.parametrize("begin", [0, 7, 4096])
def test_external_data_is_mapped(begin: int, tmp_path: Path) -> None:
    proto = model("g (float[n, 40] x) => (float[n, 50] y) { y = MatMul(x, w2) }")
    proto.graph.initializer.append(numpy_helper.from_array(WEIGHTS["w2"], "w2"))
    weight = proto.graph.initializer[0]
    data = bytes(begin) + weight.raw_data + b"more"
    (tmp_path / "w.bin").write_bytes(data)
    external_data_helper.set_external_data(weight, "w.bin", begin, len(data) - begin - 4)
    weight.ClearField("raw_data")
    path = saved(tmp_path, proto)
    found = constants(from_onnx(path))["w2"]
    assert is_mapped(found)
    np.testing.assert_array_equal(found, WEIGHTS["w2"])
    exe = unity.compile(path)
    x = RNG.standard_normal((3, 40)).astype(np.float32)
    with overwritten(tmp_path / "w.bin"):
        np.testing.assert_allclose(exe(x), x @ WEIGHTS["w2"], rtol=1e-5, atol=1e-4)


@pytest.mark.rotated(1)
def test_an_executable_needs_its_models_file_no_more(tmp_path: Path) -> None:
    path = saved(tmp_path)
    exe = unity.compile(path)
    assert not any(is_mapped(c) for c in exe.constants)
    x = RNG.standard_normal((3, 30)).astype(np.float32)
    with overwritten(path):
        for c in (True, False):
            np.testing.assert_allclose(exe(x, np.asarray(c)), expected(x, c), rtol=1e-5, atol=1e-4)


def test_bytes_that_a_model_was_read_from_are_not_kept(tmp_path: Path) -> None:
    exe = unity.compile(from_onnx(saved(tmp_path).read_bytes()))
    assert not any(isinstance(owner_of(c), bytes) for c in exe.constants)


def test_a_file_written_to_before_its_module_is_compiled_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    module = compiler.load(path)
    refused = pytest.raises(UnityError, match=r"model\.onnx was written to while it was in use")
    with overwritten(path), refused:
        unity.compile(module)


def test_a_file_written_to_while_it_is_imported_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path)
    nodes = graphs.sorted_nodes

    def longer(graph: onnx.GraphProto, name: str) -> list[onnx.NodeProto]:
        with path.open("ab") as file:
            file.write(b"more")
        return nodes(graph, name)

    monkeypatch.setattr(importer, "sorted_nodes", longer)
    with pytest.raises(UnityError, match=r"model\.onnx was written to while it was in use"):
        from_onnx(path)


def test_a_file_that_is_replaced_is_compiled_as_it_was(tmp_path: Path) -> None:
    path = saved(tmp_path)
    module = compiler.load(path)
    (tmp_path / "new").write_bytes(b"another model")
    (tmp_path / "new").replace(path)
    x = RNG.standard_normal((3, 30)).astype(np.float32)
    found = unity.compile(module)(x, np.asarray(True))
    np.testing.assert_allclose(found, expected(x, True), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9, 0.999])
def test_a_large_file_cut_short_is_refused(fraction: float, tmp_path: Path) -> None:
    path = saved(tmp_path)
    os.truncate(path, int(path.stat().st_size * fraction))
    with pytest.raises(UnityError, match=r"model\.onnx is no ONNX model"):
        from_onnx(path)


def test_a_large_weight_whose_size_is_wrong_is_refused(tmp_path: Path) -> None:
    proto = large()
    proto.graph.initializer[0].dims[0] = 31
    with pytest.raises(UnityError, match=r"declares float32\[31, 40\], which is 4960 bytes"):
        from_onnx(saved(tmp_path, proto))


def test_a_model_that_names_itself_as_external_data_is_bounded(tmp_path: Path) -> None:
    proto = large()
    external_data_helper.set_external_data(proto.graph.initializer[0], OWN, 10**9, 4800)
    proto.graph.initializer[0].ClearField("raw_data")
    with pytest.raises(UnityError, match="needs the bytes 1000000000 to 1000004800"):
        from_onnx(saved(tmp_path, proto))
    with pytest.raises(UnityError, match="was not read from a folder"):
        from_onnx(proto)


# The message without its data


def restored(graph: onnx.GraphProto, data: bytes) -> None:
    tensors = list(graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            tensors += [attribute.t, *attribute.tensors]
            for inner in (attribute.g, *attribute.graphs):
                restored(inner, data)
    for tensor in tensors:
        if tensor.data_location == TensorProto.EXTERNAL:
            entries = {e.key: e.value for e in tensor.external_data}
            assert entries["location"] == OWN
            begin = int(entries["offset"])
            tensor.raw_data = data[begin : begin + int(entries["length"])]
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")


def test_the_message_tells_the_same_without_the_data() -> None:
    data = large().SerializeToString()
    short = outlined(data)
    assert len(short) < 4 * LEAST < len(data)
    found = onnx.ModelProto.FromString(short)
    restored(found.graph, data)
    assert found == large()


def test_a_message_of_small_tensors_stays_as_it_is() -> None:
    data = model("g (float[n] x) => (float[n] y) { y = Relu(x) }").SerializeToString()
    assert outlined(data) == data
    assert outlined(b"") == b""


def test_weights_in_local_functions_are_left_out(tmp_path: Path) -> None:
    data = np.ones((70, 50), np.float32)
    proto = model("g (float[70, 50] x) => (float[70, 50] y) { y = Relu(x) }")
    body = [constant("w", data), helper.make_node("Add", ["a", "w"], ["b"])]
    opsets = [helper.make_opsetid("", 18)]
    proto.functions.append(helper.make_function("local", "F", ["a"], ["b"], body, opsets))
    proto.opset_import.append(helper.make_opsetid("local", 1))
    proto.graph.node[0].CopyFrom(helper.make_node("F", ["x"], ["y"], domain="local"))
    found = constants(from_onnx(saved(tmp_path, proto)))
    assert [a.shape for a in found.values() if is_mapped(a)] == [(70, 50)]


def field(number: int, data: bytes) -> bytes:
    """A field of a message, its bytes after their number and length."""
    found = bytearray([number << 3 | 2])
    length = len(data)
    while length >= 0x80:
        found.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*found, length]) + data


def nested(depth: int) -> bytes:
    """A model of a node in a branch in a branch, with a weight in the last."""
    inner = constant("w", WEIGHTS["w"]).SerializeToString()
    for _ in range(depth):
        inner = field(5, field(6, field(1, inner)))  # an attribute, its graph, its node
    return field(7, field(1, inner))


def test_graphs_nested_too_deep_are_left_to_protobuf() -> None:
    few, many = nested(10), nested(1000)
    assert len(outlined(few)) < LEAST < len(few)
    assert outlined(many) == many
    with pytest.raises(UnityError, match="is no ONNX model"):
        from_onnx(many)


def test_flipped_bytes_of_a_large_model_never_do_anything_but_raise_our_error() -> None:
    data = bytearray(large().SerializeToString())
    rng = np.random.default_rng(1)
    structure = np.asarray([i for i in range(len(data)) if i < 200 or i > len(data) - 1500])
    for _ in range(300):
        damaged = bytearray(data)
        for at in rng.choice(structure, int(rng.integers(1, 4))):
            damaged[at] = int(rng.integers(0, 256))
        with suppress(UnityError):
            from_onnx(bytes(damaged))
