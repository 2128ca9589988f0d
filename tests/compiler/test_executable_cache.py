"""The cache of executables: what is found is what would be compiled, and nothing else ever is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

import unity
from unity import compilation, executable_cache
from unity.codegen import sources
from unity.codegen.assemble import assemble
from unity.codegen.llvm import host_target
from unity.errors import UnityError
from unity.executable_cache import FOLDER
from unity.frontend.onnx.reading.external import external_files
from unity.ir.equality import structural_equal
from unity.machine import changed
from unity.runtime.executable import Executable
from unity.transform import backend_of, register_backend

Weight: TypeAlias = "npt.NDArray[np.float32]"
X = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
W = np.random.default_rng(1).standard_normal(64).astype(np.float32)
MATRIX = np.random.default_rng(2).standard_normal((64, 64)).astype(np.float32)


def model(weight: Weight = W) -> onnx.ModelProto:
    """``relu(x + w)``, or ``relu(x @ w)`` of a matrix, for rows of unknown number."""
    kind = "Add" if weight.ndim == 1 else "MatMul"
    graph = helper.make_graph(
        [helper.make_node(kind, ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 64])],
        [numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def expected(weight: Weight = W) -> Weight:
    made: Weight = np.maximum(X + weight if weight.ndim == 1 else X @ weight, 0)
    return made


@pytest.fixture(autouse=True)
def unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests registered in this process counts no more."""
    monkeypatch.setattr(changed, "_CHANGED", set[str]())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(model(), path)
    return path


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What the compiler was asked to compile."""
    seen: list[object] = []
    made: Callable[..., Executable] = compilation.compiled

    def watch(program: object, *args: object, **named: object) -> Executable:
        seen.append(program)
        return made(program, *args, **named)

    monkeypatch.setattr(compilation, "compiled", watch)
    return seen


def test_the_second_time_nothing_is_compiled(file: Path, compiled: list[object]) -> None:
    onnx.save(model(MATRIX), file)
    first = unity.compile(file, cache=file.parent)
    again = unity.compile(str(file), cache=file.parent)
    assert compiled == [file]
    for exe in (first, again):
        np.testing.assert_allclose(exe(X), expected(MATRIX), rtol=1e-4, atol=1e-4)
    assert again.kernels == first.kernels
    assert again.signature == first.signature
    assert again.native() == first.native()
    assert str(again.explain()) == str(first.explain())
    assert again.threads == first.threads


CHILD = """
import json, sys
import numpy as np
import unity
exe = unity.compile(sys.argv[1], cache=sys.argv[2])
told = exe(np.ones((2, 64), np.float32)).shape
heavy = ["unity.compilation", "unity.transform", "unity.op", "unity.te", "unity.arith",
         "unity.interpreter", "unity.frontend", "unity.tuning", "unity.script", "unity.ir.stmt",
         "sympy", "onnx", "typer", "rich"]
print(json.dumps({"shape": told, "loaded": [m for m in heavy if m in sys.modules]}))
"""


def test_another_process_finds_it_without_the_compiler(file: Path) -> None:
    unity.compile(file, cache=file.parent)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(file), str(file.parent)],
        capture_output=True, text=True, check=True, cwd=Path(unity.__file__).parents[1],
    )  # fmt: skip
    assert json.loads(done.stdout) == {"shape": [2, 64], "loaded": []}


def test_what_only_the_compiler_tells_is_compiled_for(file: Path, compiled: list[object]) -> None:
    first = unity.compile(file, cache=file.parent)
    again = unity.compile(file, cache=file.parent)
    (kernel, *_) = again.kernels
    assert len(compiled) == 1
    assert again.ir() == first.ir()
    assert again.llvm(kernel) == first.llvm(kernel)
    assert again.asm(kernel) == first.asm(kernel)
    assert [r.rule for r in again.rules(kernel)] == [r.rule for r in first.rules(kernel)]
    assert structural_equal(again.schedule(kernel).kernel(), first.schedule(kernel).kernel())
    assert structural_equal(again.kernel(kernel), first.kernel(kernel))
    assert len(compiled) == 2
    again.save(file.with_suffix(".unity"))
    np.testing.assert_array_equal(unity.load(file.with_suffix(".unity"))(X), again(X))


def test_what_only_the_compiler_tells_of_a_model_that_is_gone(file: Path) -> None:
    unity.compile(file, cache=file.parent)
    again = unity.compile(file, cache=file.parent)
    onnx.save(model(W + 1), file)
    np.testing.assert_allclose(again(X), expected(), rtol=1e-4, atol=1e-4)
    with pytest.raises(UnityError, match=r"m\.onnx is gone or another since it was compiled"):
        again.asm()


OTHERWISE: dict[str, Callable[[Path], Executable]] = {
    "threads": lambda p: unity.compile(p, cache=p.parent, threads=3),
    "target": lambda p: unity.compile(p, replace(host_target(), l2_bytes=1 << 16), cache=p.parent),
    "dynamic": lambda p: unity.compile(p, cache=p.parent, dynamic={"n": 3}),
    "precision": lambda p: unity.compile(
        p, cache=p.parent, precision="bf16" if host_target().has("avx512bf16") else "f16"
    ),
    "weights": lambda p: unity.compile(p, cache=p.parent, weights="int8"),
    "winograd": lambda p: unity.compile(p, cache=p.parent, winograd=False),
    "bounds": lambda p: unity.compile(p, cache=p.parent, check_bounds=True),
    "pipeline": lambda p: unity.compile(p, cache=p.parent, pipeline=unity.pipeline("cpu")),
    "resolve": lambda p: unity.compile(p, cache=p.parent, resolve="tir"),
    "check": lambda p: unity.compile(p, cache=p.parent, check=True),
    "trace": lambda p: unity.compile(p, cache=p.parent, trace=p.parent / "trace"),
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_other_options_find_nothing(file: Path, compiled: list[object], what: str) -> None:
    unity.compile(file, cache=file.parent)
    exe = OTHERWISE[what](file)
    assert len(compiled) == 2
    np.testing.assert_allclose(exe(X), expected(), rtol=0.1, atol=0.3)


def test_decisions_and_records_count(file: Path, compiled: list[object]) -> None:
    def made() -> Executable:
        return unity.compile(file, cache=file.parent, db=str(records), decisions=decisions)

    records = file.with_name("db.jsonl")
    records.write_text("")
    first = unity.compile(file, cache=file.parent)
    (rule, *_) = first.rules(first.kernels[0])
    name, (one, other, *_) = next((n, c.values) for n, c in rule.legal.items() if len(c.values) > 1)
    decisions = {rule.blocks[0]: {name: one}}
    for times in (2, 2):
        made()
        assert len(compiled) == times
    decisions = {rule.blocks[0]: {name: other}}
    made()
    assert len(compiled) == 3
    records.write_text('{"about":"torn')
    made()
    assert len(compiled) == 4


def test_another_model_finds_nothing(file: Path) -> None:
    unity.compile(file, cache=file.parent)
    onnx.save(model(W + 1), file)
    np.testing.assert_allclose(
        unity.compile(file, cache=file.parent)(X), expected(W + 1), rtol=1e-3, atol=1e-3
    )


def test_another_compiler_finds_nothing(
    file: Path, compiled: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    unity.compile(file, cache=file.parent)
    monkeypatch.setattr(executable_cache, "compiler_digest", lambda: "changed")
    unity.compile(file, cache=file.parent)
    assert len(compiled) == 2


def test_a_compiler_that_is_written_to_while_it_runs_is_like_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digest = sources.source_digest.__wrapped__
    assert digest() == digest()
    monkeypatch.setattr(sources, "LOADED", 0.0)
    assert digest() != digest()


def test_another_backend_of_this_machine_finds_nothing(file: Path, compiled: list[object]) -> None:
    unity.compile(file, cache=file.parent)
    register_backend(backend_of("cpu"))
    unity.compile(file, cache=file.parent)
    assert len(compiled) == 2


def in_files(folder: Path, weight: Weight = W) -> Path:
    """The model, its weight in a file beside it."""
    proto = model(weight)
    (tensor,) = proto.graph.initializer
    (folder / "w.bin").write_bytes(tensor.raw_data)
    set_external_data(tensor, "w.bin")
    tensor.ClearField("raw_data")
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    return folder / "m.onnx"


def test_files_that_a_model_names_count(tmp_path: Path, compiled: list[object]) -> None:
    path = in_files(tmp_path)
    assert external_files(path) == ("w.bin",)
    unity.compile(path, cache=tmp_path)
    np.testing.assert_allclose(
        unity.compile(path, cache=tmp_path)(X), expected(), rtol=1e-4, atol=1e-4
    )
    assert len(compiled) == 1
    before = path.read_bytes()
    in_files(tmp_path, W + 1)
    assert path.read_bytes() == before
    np.testing.assert_allclose(
        unity.compile(path, cache=tmp_path)(X), expected(W + 1), rtol=1e-3, atol=1e-3
    )
    (tmp_path / "w.bin").unlink()
    with pytest.raises(UnityError, match=r"'w\.bin' is missing"):
        unity.compile(path, cache=tmp_path)


@pytest.mark.parametrize("name", ["m.onnx", "w.bin"])
def test_a_file_that_is_replaced_meanwhile_is_not_kept(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = in_files(tmp_path)

    def replacing(*args: Any, **named: Any) -> Executable:
        new = tmp_path / "new"
        data = bytearray((tmp_path / name).read_bytes())
        data[-1] ^= 1
        new.write_bytes(data)
        new.replace(tmp_path / name)
        return assemble(*args, **named)

    monkeypatch.setattr(compilation, "assemble", replacing)
    unity.compile(path, cache=tmp_path)
    assert entries(tmp_path) == []


def entries(folder: Path) -> Sequence[Path]:
    return list((folder / FOLDER).glob("*/*.unity"))


def test_a_damaged_one_is_compiled_again(file: Path, compiled: list[object]) -> None:
    unity.compile(file, cache=file.parent)
    (entry,) = entries(file.parent)
    data = bytearray(entry.read_bytes())
    data[len(data) // 2] ^= 1
    entry.write_bytes(data)
    exe = unity.compile(file, cache=file.parent)
    assert len(compiled) == 2
    np.testing.assert_allclose(exe(X), expected(), rtol=1e-4, atol=1e-4)
    unity.compile(file, cache=file.parent)
    assert len(compiled) == 2


def test_large_ones_are_not_kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executable_cache, "LARGEST", 200)
    unity.compile(file, cache=file.parent)
    assert entries(file.parent) == []


def test_modules_and_models_in_memory_are_not_kept(tmp_path: Path) -> None:
    unity.compile(model(), cache=tmp_path)
    unity.compile(unity.load(model()), cache=tmp_path)
    assert entries(tmp_path) == []
