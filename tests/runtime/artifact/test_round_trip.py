"""What is loaded does all that was saved could do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import ml_dtypes
import numpy as np
import pytest

import unity
from tests.bench import cnn, recurrent, transformer
from tests.bench.models import tokens
from tests.generators.graph import arguments_for
from tests.generators.graph import module as random_module
from unity import runtime
from unity.errors import UnityError
from unity.runtime.artifact.read import read_manifest
from unity.runtime.executable import Executable
from unity.script import R as R
from unity.script import Tensor, constants_of, dim, f32, function, module, parse, print_module
from unity.transform.graph import CountNonzero

from .programs import (
    SMALL,
    again,
    negate_into,
    on_tiles,
    same_in_another_process,
    small,
    small_result,
)

X = np.arange(12, dtype=np.float32).reshape(3, 4)
n = dim("n")


def same(exe: Executable, loaded: Executable, feeds: dict[str, np.ndarray]) -> None:
    for name, value in exe.run(feeds).items():
        np.testing.assert_array_equal(loaded.run(feeds)[name], value)


def test_all_ways_to_call(tmp_path: Path) -> None:
    loaded = again(small(), tmp_path)
    for x in (X, X[:1], X[:0], np.tile(X, (9, 1))):
        for result in (loaded(x), loaded(x=x), loaded["main"](x), loaded.run({"in/x": x})["out:0"]):
            np.testing.assert_allclose(np.asarray(result), small_result(x), rtol=1e-6)


@pytest.mark.torch
def test_torch_in_torch_out(tmp_path: Path) -> None:
    import torch

    result = again(small(), tmp_path)(torch.from_numpy(X))
    assert isinstance(result, torch.Tensor)
    np.testing.assert_allclose(result.numpy(), small_result(X), rtol=1e-6)


def test_all_that_it_tells(tmp_path: Path) -> None:
    exe = unity.compile(parse(SMALL), resolve="static", threads=2)
    loaded = again(exe, tmp_path)
    assert loaded.threads == 2
    loaded.threads = 1
    assert loaded.threads == 1
    assert loaded.peak_bytes(n=100) == exe.peak_bytes(n=100)
    assert loaded.symbols == exe.symbols
    assert loaded.kernels == exe.kernels
    assert len(loaded.explain()) > 0
    assert [r.what for r in loaded.profile(X).rows]
    assert loaded.benchmark(X, repeat=2).min > 0
    with pytest.raises(UnityError, match=r"input 'x' axis 1: expected 4, got 3"):
        loaded(np.ones((2, 3), np.float32))
    for text in (loaded.ir, loaded.llvm, loaded.asm):
        with pytest.raises(
            UnityError, match=r"holds no source texts\nhint: compile the model again"
        ):
            text()


def test_a_loaded_executable_can_be_saved(tmp_path: Path) -> None:
    loaded = again(small(), tmp_path)
    (tmp_path / "b").mkdir()
    np.testing.assert_allclose(again(loaded, tmp_path / "b")(X), small_result(X), rtol=1e-6)
    first, second = (read_manifest(p / "a.unity") for p in (tmp_path, tmp_path / "b"))
    assert first == second


def test_threads_are_as_asked_for_or_as_many_as_there_are(tmp_path: Path) -> None:
    exe, free = small(), unity.compile(parse(SMALL))
    exe.save(tmp_path / "two.unity")
    free.save(tmp_path / "free.unity")
    assert runtime.load(tmp_path / "two.unity").threads == 2
    assert runtime.load(tmp_path / "two.unity", threads=3).threads == 3
    assert runtime.load(tmp_path / "free.unity").threads == free.threads
    with pytest.raises(UnityError, match="threads=0"):
        runtime.load(tmp_path / "two.unity", threads=0)


@pytest.mark.rotated(3)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_with_branches_loops_scans_and_closures(seed: int, tmp_path: Path) -> None:
    program = random_module(Random(seed), 14, control_flow=True)
    exe = unity.compile(program)
    loaded = again(exe, tmp_path)
    args = arguments_for(program, np.random.default_rng(seed))
    expected, got = exe(*args), loaded(*args)
    flat = got if isinstance(got, tuple) else (got,)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for mine, theirs in zip(flat, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))


def test_operators_on_the_host(tmp_path: Path) -> None:
    exe = unity.compile(
        parse("""
n = dim("n")
@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, R.rank(1)]:
    i = R.nonzero(x)
    return R.take(x, R.reshape(i, (-1,)), axis=0)
"""),
        pipeline=unity.pipeline().without(CountNonzero),
    )
    loaded = again(exe, tmp_path)
    assert loaded.native()["main"].startswith("bytecode")
    x = np.asarray([0, 2, 0, 3], np.float32)
    np.testing.assert_array_equal(np.asarray(loaded(x)), [2, 3])


def test_python_functions_of_modules(tmp_path: Path) -> None:
    @function
    def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
        y = R.call_python(negate_into, (x,), out=f32[Tensor, n])
        return R.exp(y)

    loaded = again(unity.compile(module(main)), tmp_path, hosts=[negate_into])
    np.testing.assert_allclose(loaded(X[0]), np.exp(-X[0]), rtol=1e-5)


def test_python_functions_of_nowhere_are_refused(tmp_path: Path) -> None:
    def inside(source: object, destination: object) -> None: ...

    @function
    def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
        return R.call_python(inside, (x,), out=f32[Tensor, n])

    exe = unity.compile(module(main))
    with pytest.raises(
        UnityError, match=r"can't be saved\n  - .*inside is no function of a module"
    ):
        exe.save(tmp_path / "a.unity")
    assert not list(tmp_path.iterdir())


CONSTANTS = """
@script.function
def main(x: f32[Tensor, 2, 3]) -> tuple[{types}]:
    return ({names},)
"""


def test_constants_of_all_dtypes(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors")
    kinds = [
        np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8, np.bool_,
        ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.float8_e4m3fn,
        ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.float4_e2m1fn,
    ]  # fmt: skip
    names = ["f16", "f32", "f64", "i8", "i32", "i64", "u8", "boolean", "bf16", "i4", "f8e4m3"]
    names += ["i2", "u2", "f4e2m1"]
    shapes = [(2, 3), (), (0, 3)]
    rng = np.random.default_rng(0)
    data = {
        f"c{i}_{k}": rng.integers(0, 2, shape).astype(kind)
        for i, kind in enumerate(kinds)
        for k, shape in enumerate(shapes)
    }
    types = [f"{name}[Tensor, {', '.join(map(str, s))}]" if s else f"{name}[Tensor, R.rank(0)]"
             for name in names for s in shapes]  # fmt: skip
    text = CONSTANTS.format(
        types=", ".join(types), names=", ".join(f'R.const("{c}")' for c in data)
    )
    exe = unity.compile(parse(text, data))
    loaded = again(exe, tmp_path)
    for got, want in zip(loaded(np.ones((2, 3), np.float32)), data.values(), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    kept = [c for c in exe.constants if c.dtype in (np.float32, np.int64) and c.size]
    with safetensors.safe_open(tmp_path / "a.unity", "numpy") as file:  # other tools read them
        stored = {name: file.get_slice(name).get_dtype() for name in file.offset_keys()}
        seen = [file.get_tensor(k) for k, kind in stored.items() if kind in ("F32", "I64")]
    assert len(seen) >= len(kept) > 0
    for want in kept:
        assert any(np.array_equal(found, want) for found in seen)
    assert all(not c.flags.writeable for c in loaded.constants)


@pytest.mark.long("compiles, saves and loads five models")
@pytest.mark.rotated(2)
def test_models_with_symbolic_sizes(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    exe = unity.compile(cnn.resnet(18, batch="N", size=32, stages=1))
    loaded = again(exe, tmp_path)
    for batch in (1, 3):
        same(exe, loaded, {"image": rng.standard_normal((batch, 3, 32, 32), np.float32)})
    exe = unity.compile(transformer.bert(1, 32, 2, 64, 100, batch="B", length="S"))
    loaded = again(exe, tmp_path)
    for length in (1, 7, 32):
        same(exe, loaded, tokens(length, 100))


@pytest.mark.rotated(2)
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_models(kind: str, tmp_path: Path) -> None:
    exe = unity.compile(recurrent.recurrent(kind, steps="T", width=8, hidden=16, classes=5))
    loaded = again(exe, tmp_path)
    rng = np.random.default_rng(2)
    for steps in (1, 9):
        same(exe, loaded, {"x": rng.standard_normal((steps, 1, 8), np.float32)})


@pytest.mark.long("compiles, saves and loads decoders with caches")
@pytest.mark.rotated(1)
def test_sessions(tmp_path: Path) -> None:
    model = transformer.gpt2(layers=1, width=64, heads=2, ffn=128, vocab=300)
    exe = unity.compile(model, caches=True)
    first, second = exe.session(32), again(exe, tmp_path).session(32)
    rng = np.random.default_rng(3)
    for count in (5, 1, 1, 3):
        ids = rng.integers(0, 100, (1, count))
        for name, value in first.run({"input_ids": ids}).items():
            np.testing.assert_array_equal(second.run({"input_ids": ids})[name], value)
    assert second.fork().length == 10


def test_unity_load_tells_models_from_executables(tmp_path: Path) -> None:
    small().save(tmp_path / "a.unity")
    np.testing.assert_allclose(unity.load(tmp_path / "a.unity")(X), small_result(X), rtol=1e-6)
    model = cnn.mlp()
    (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
    imported = unity.load(str(tmp_path / "a.onnx"))
    assert isinstance(imported, unity.IRModule)
    assert print_module(parse(print_module(imported), constants_of(imported)))
    with pytest.raises(UnityError, match=r"is an executable, compiled already\nhint: unity.load"):
        unity.compile(tmp_path / "a.unity")
    with pytest.raises(UnityError, match=r"hosts, key and threads are for executables"):
        unity.load(tmp_path / "a.onnx", threads=2)


CHILD = """
import json, sys
import numpy as np
from unity.runtime import load
import unity
assert unity.load(sys.argv[1]).functions == ("main",)
exe = load(sys.argv[1])
x = np.arange(12, dtype=np.float32).reshape(3, 4)
heavy = ["unity.compiler", "unity.codegen", "unity.script", "unity.transform", "unity.op",
         "unity.te", "unity.arith", "unity.interpreter", "unity.frontend", "unity.ir.dims",
         "unity.ir.graph", "sympy", "onnx", "typer", "rich"]
print(json.dumps({"result": exe(x).tolist(), "loaded": [m for m in heavy if m in sys.modules]}))
"""


def test_another_process_loads_without_the_compiler(tmp_path: Path) -> None:
    small().save(tmp_path / "a.unity")
    root = Path(unity.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "a.unity")],
        capture_output=True, text=True, check=True, cwd=root,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["loaded"] == []
    np.testing.assert_allclose(told["result"], small_result(X), rtol=1e-6)


NARROW = """
import sys
import numpy as np
from unity.runtime import load
from unity.runtime import tiles
assert tiles.permit_tiles.cache_info().currsize == 0
exe = load(sys.argv[1])
x = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
np.save(sys.argv[2], exe(x))
"""


def test_tile_registers_in_a_process_that_has_no_leave_yet(tmp_path: Path) -> None:
    exe = on_tiles()
    exe.save(tmp_path / "a.unity")
    same_in_another_process(exe, NARROW, tmp_path / "a.unity")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no list of what is mapped")
def test_constants_are_mapped_not_copied(tmp_path: Path) -> None:
    data = {"c": np.arange(40_000, dtype=np.float32)}
    exe = unity.compile(parse("""
@script.function
def main(x: f32[Tensor, 40000]) -> f32[Tensor, 40000]:
    return R.add(x, R.const("c"))
""", data))  # fmt: skip
    loaded = again(exe, tmp_path)
    lines = Path("/proc/self/maps").read_text().splitlines()
    mapped = [line.split()[0].split("-") for line in lines if str(tmp_path / "a.unity") in line]
    (constant,) = loaded.constants
    assert constant.ctypes.data % 64 == 0
    assert any(int(a, 16) <= constant.ctypes.data < int(b, 16) for a, b in mapped)
    np.testing.assert_array_equal(loaded(data["c"]), 2 * data["c"])


def test_it_outlives_its_file(tmp_path: Path) -> None:
    """The file may be replaced, as saving does, or removed."""
    exe = unity.compile(parse(SMALL.replace("1.0", 'R.const("c")'), {"c": np.ones(4, np.float32)}))
    exe.save(tmp_path / "a.unity")
    loaded = runtime.load(tmp_path / "a.unity")
    unity.compile(parse(SMALL.replace("1.0", "2.0"))).save(tmp_path / "a.unity")
    np.testing.assert_allclose(loaded(X), small_result(X), rtol=1e-6)
    (tmp_path / "a.unity").unlink()
    np.testing.assert_allclose(loaded(X), small_result(X), rtol=1e-6)
