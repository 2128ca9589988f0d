"""Libraries and engines of what is loaded: found again, or told of; never a wrong answer."""

from __future__ import annotations

import ctypes.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import unity
from tests.codegen.engine.stub import Stage, StubEngine
from unity import runtime
from unity.codegen.engine import register_engine, register_engines
from unity.codegen.library import SharedLibrary
from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.runtime.artifact.read import read_manifest
from unity.runtime.engines import engine as runtime_engine
from unity.runtime.executable import Executable
from unity.runtime.linking import foreign
from unity.script import parse
from unity.transform.graph.resolve.engine import ENGINES

from .programs import again

Floats = npt.NDArray[np.float32]
LIBM = ctypes.util.find_library("m")
PROGRAM = """
n = dim("n")
@script.function
def main(x: f32[Tensor, n, 8], w: f32[Tensor, 8, 5]) -> f32[Tensor, n, 5]:
    with R.dataflow():
        y = R.matmul(R.exp(x), w)
        z = R.nn.relu(y)
    return z
"""
COSINE = """
n = dim("n")
@script.prim_func
def cosines(x: f32[Buffer, n], y: f32[Buffer, n]) -> None:
    for i in range(n):
        y[i] = T.call_extern("LIBRARY.FUNCTION", x[i], dtype="float32")
@script.function
def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
    y = R.call_tir(cosines, (x,), out=f32[Tensor, n])
    return y
"""
CHILD = """
import json, sys
import numpy as np
from unity.errors import UnityError
from unity.runtime import load
try:
    exe = load(sys.argv[1])
    args = [np.full(s, 0.5, np.float32) for s in json.loads(sys.argv[2])]
    exe.threads = int(sys.argv[3])
    found = [np.asarray(exe(*args)).tolist() for _ in range(2)][1]
    print(json.dumps({"result": found, "compiler": "unity.codegen" in sys.modules}))
except UnityError as error:
    print(json.dumps({"error": str(error)}))
"""


@pytest.fixture(autouse=True)
def _engines() -> Iterator[None]:
    register_engines()
    before, loaders = dict(ENGINES), dict(runtime_engine._loaders)
    yield
    ENGINES.clear()
    ENGINES.update(before)
    runtime_engine._loaders.clear()
    runtime_engine._loaders.update(loaders)


def installed(name: str) -> str:
    if ENGINES[name].missing() is not None:
        pytest.skip(f"{name} is not installed")
    return name


def elsewhere(
    path: Path, shapes: Sequence[Sequence[int]], threads: int = 1, *, first: str = ""
) -> dict[str, Any]:
    """What another process, without the compiler, makes of an artifact."""
    root = Path(unity.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", first + CHILD, str(path), json.dumps(shapes), str(threads)],
        capture_output=True, text=True, check=True, cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def expected(x: Floats, w: Floats) -> Floats:
    return np.asarray(np.maximum(np.exp(x) @ w, 0), np.float32)


X, W = np.full((3, 8), 0.5, np.float32), np.full((8, 5), 0.5, np.float32)


# ------------------------------------------------------------------------------------ libraries


def test_openblas_in_this_and_in_another_process(tmp_path: Path) -> None:
    exe = unity.compile(parse(PROGRAM), resolve={"matmul": "library:openblas"})
    loaded = again(exe, tmp_path)
    np.testing.assert_allclose(loaded(X, W), expected(X, W), rtol=1e-5)
    told = elsewhere(tmp_path / "a.unity", [X.shape, W.shape], 2)
    np.testing.assert_allclose(told["result"], expected(X, W), rtol=1e-5)
    assert not told["compiler"]
    (record,) = read_manifest(tmp_path / "a.unity").libraries
    assert record.name == "openblas"


def calls(library: str, function: str, threads: int | None = None) -> Executable:
    text = COSINE.replace("LIBRARY", library).replace("FUNCTION", function)
    return unity.compile(parse(text), threads=threads)


@pytest.mark.skipif(LIBM is None, reason="no C library of mathematics")
def test_a_users_library_is_found_again(tmp_path: Path) -> None:
    SharedLibrary("cosines", lambda: [LIBM or ""]).register()
    loaded = again(calls("cosines", "cosf"), tmp_path)
    np.testing.assert_allclose(loaded(X[0]), np.cos(X[0]), rtol=1e-6)
    told = elsewhere(tmp_path / "a.unity", [(4,)], first=registering("cosines", LIBM or ""))
    np.testing.assert_allclose(told["result"], np.cos(X[0, :4]), rtol=1e-6)
    text = elsewhere(tmp_path / "a.unity", [(4,)])["error"]  # the system's linker is not asked
    assert "can't load" in text
    assert (
        "it calls what this program has not named or registered\n  - the library 'cosines'" in text
    )


def registering(name: str, *files: object) -> str:
    """A program's first lines, which register a library."""
    given = [str(file) for file in files]
    return f"import unity.runtime\nunity.runtime.ForeignLibrary({name!r}, {given}).register()\n"


def made_of_c(folder: Path, name: str, body: str, function: str = "f") -> Path:
    """A shared library of one C function from float to float."""
    compiler = next((c for c in ("cc", "gcc", "clang") if _found(c)), None)
    if compiler is None:
        pytest.skip("no C compiler to make a library with")
    (folder / f"{name}.c").write_text(f"float {function}(float x) {{ {body} }}")
    path = folder / f"lib{name}.so"
    command = [compiler, "-shared", "-fPIC", "-o", str(path), str(folder / f"{name}.c")]
    subprocess.run(command, check=True)
    return path


def _found(program: str) -> bool:
    return any((Path(p) / program).exists() for p in os.environ.get("PATH", "").split(os.pathsep))


def test_the_very_library_may_be_delivered_beside_the_artifact(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    path = made_of_c(tmp_path, "doubling", "return 2 * x;")
    SharedLibrary("doubling", [path]).register()
    calls("doubling", "f").save(tmp_path / "there" / "a.unity")
    text = elsewhere(tmp_path / "there" / "a.unity", [(4,)])["error"]  # though it is where it was
    assert "unity.runtime.ForeignLibrary('doubling', [file]).register()" in text
    assert "or put 'libdoubling.so' beside it as it was" in text
    beside = path.rename(tmp_path / "there" / path.name)
    told = elsewhere(tmp_path / "there" / "a.unity", [(4,)])
    assert told["result"] == [1.0] * 4
    beside.write_bytes(beside.read_bytes() + b"\0")  # another one that is called so
    text = elsewhere(tmp_path / "there" / "a.unity", [(4,)])["error"]
    assert "or put 'libdoubling.so' beside it as it was" in text


def test_a_missing_library_is_told_with_what_was_searched(tmp_path: Path) -> None:
    path = made_of_c(tmp_path, "leaving", "return x;")
    SharedLibrary("leaving", [path], hint="get it at the usual place").register()
    calls("leaving", "f").save(tmp_path / "a.unity")
    path.unlink()
    first = registering("leaving", path, "libleaving.so")
    text = elsewhere(tmp_path / "a.unity", [(4,)], first=first)["error"]
    assert f"can't load {tmp_path}/a.unity: the library 'leaving' can't be loaded: " in text
    assert f"{path}: " in text
    assert "libleaving.so: cannot open shared object file" in text
    text = elsewhere(tmp_path / "a.unity", [(4,)])["error"]
    assert text.endswith("beside it as it was ('get it at the usual place')")


def test_a_library_that_is_none(tmp_path: Path) -> None:
    path = made_of_c(tmp_path, "spoilt", "return x;")
    SharedLibrary("spoilt", [path]).register()
    calls("spoilt", "f").save(tmp_path / "a.unity")
    other = tmp_path / "libother.so"  # of the first one this process has a copy
    other.write_bytes(b"\x7fELF and nothing else")
    SharedLibrary("spoilt", [other]).register()
    with pytest.raises(UnityError, match="the library 'spoilt' can't be loaded"):
        runtime.load(tmp_path / "a.unity")
    with pytest.raises(UnityError, match="the library 'spoilt' can't be loaded"):
        calls("spoilt", "f")


def test_a_library_without_the_function(tmp_path: Path) -> None:
    SharedLibrary("older", [made_of_c(tmp_path, "older", "return x;")]).register()
    calls("older", "f").save(tmp_path / "a.unity")
    SharedLibrary("older", [made_of_c(tmp_path, "newer", "return x;", "g")]).register()
    with pytest.raises(UnityError, match=r"(?s)'older' .* has no function 'f'\nhint: looked for f"):
        runtime.load(tmp_path / "a.unity")


def test_what_is_registered_here_is_taken(tmp_path: Path) -> None:
    SharedLibrary("either", [made_of_c(tmp_path, "one", "return 1;")]).register()
    calls("either", "f").save(tmp_path / "a.unity")
    SharedLibrary("either", [made_of_c(tmp_path, "two", "return 2;")]).register()
    np.testing.assert_array_equal(runtime.load(tmp_path / "a.unity")(X[0]), np.full(8, 2))
    assert elsewhere(tmp_path / "a.unity", [(4,)])["result"] == [1.0] * 4  # it lies beside
    assert foreign.registered("nobody") is None


# -------------------------------------------------------------------------------------- engines


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_engines_in_this_and_in_another_process(engine: str, tmp_path: Path) -> None:
    exe = unity.compile(parse(PROGRAM), resolve={"matmul": f"engine:{installed(engine)}"})
    loaded = again(exe, tmp_path)
    assert loaded.native() == {"main": "native"}
    for threads in (1, 2):
        loaded.threads = threads
        for rows in (1, 3, 20):
            x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
            np.testing.assert_allclose(loaded(x, W), expected(x, W), rtol=1e-4, atol=1e-5)
    told = elsewhere(tmp_path / "a.unity", [X.shape, W.shape], 2)
    np.testing.assert_allclose(told["result"], expected(X, W), rtol=1e-4)
    assert not told["compiler"]


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_a_missing_package_is_told_with_the_command(engine: str, tmp_path: Path) -> None:
    exe = unity.compile(parse(PROGRAM), resolve={"matmul": f"engine:{installed(engine)}"})
    exe.save(tmp_path / "a.unity")
    without = (
        "import importlib.util\nfind = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda n, p=None: None if n == {engine!r} else find(n, p)\n"
    )
    text = elsewhere(tmp_path / "a.unity", [X.shape, W.shape], first=without)["error"]
    assert f"the engine '{engine}' can't be used: the package {engine} is not installed" in text
    assert f"pip install {engine}" in text


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_a_model_that_the_engine_cannot_load(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exe = unity.compile(parse(PROGRAM), resolve={"matmul": f"engine:{installed(engine)}"})
    kind = type(exe._parts.image.engines[0].make(exe.threads))
    monkeypatch.setattr(kind, "save", lambda self: b"\x08\x07nonsense")
    exe.save(tmp_path / "a.unity")
    with pytest.raises(
        UnityError, match=rf"can't load .*: the engine {engine} can't load {engine}_"
    ):
        runtime.load(tmp_path / "a.unity")


def exponential(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    np.copyto(outputs[0], np.exp(inputs[0]))


def vendor(fails: Stage = "") -> StubEngine:
    """The engine of somebody, for exponentials."""
    return StubEngine("vendor", fails, exponential)


def vendors(fails: Stage = "") -> Executable:
    register_engine(vendor(fails))
    return unity.compile(parse(PROGRAM), resolve={"exp": "engine:vendor"})


def test_an_engine_of_another_package(tmp_path: Path) -> None:
    loaded = again(vendors(), tmp_path)
    np.testing.assert_allclose(loaded(X, W), expected(X, W), rtol=1e-5)


def test_an_engine_that_nobody_knows_here(tmp_path: Path) -> None:
    vendors().save(tmp_path / "a.unity")
    text = elsewhere(tmp_path / "a.unity", [X.shape, W.shape])["error"]
    assert f"\n  - the engine 'vendor': import {StubEngine.__module__!r}, and register it" in text
    assert "(unity.runtime.provide_loader)" in text
    assert "entry point of 'unity.engines'" in text


ENTRY_POINT = """
import sys
from types import ModuleType
from importlib import metadata
import numpy as np

class Vendor:
    name = "vendor"
    def missing(self): return None
    def load(self, data, target, threads):
        assert data == b"vendor" and target.kind == "cpu" and threads >= 1
        return lambda inputs, outputs: np.copyto(outputs[0], np.exp(inputs[0]))

made = ModuleType("vendor_package")
made.LOADER = Vendor()
sys.modules["vendor_package"] = made
point = metadata.EntryPoint("vendor", "vendor_package:{what}", "unity.engines")
metadata.entry_points = lambda group, name: [point] if group == "unity.engines" else []
"""


def test_an_engine_by_its_entry_point(tmp_path: Path) -> None:
    vendors().save(tmp_path / "a.unity")
    first = ENTRY_POINT.replace("{what}", "LOADER")
    told = elsewhere(tmp_path / "a.unity", [X.shape, W.shape], first=first)
    np.testing.assert_allclose(told["result"], expected(X, W), rtol=1e-5)
    first = ENTRY_POINT.replace("{what}", "GONE")
    text = elsewhere(tmp_path / "a.unity", [X.shape, W.shape], first=first)["error"]
    assert "the engine 'vendor' of vendor_package:GONE can't be loaded: AttributeError" in text


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        ("missing", "the engine 'vendor' can't be used: it was never built"),
        (
            "load",
            "the engine vendor can't load vendor_.*: ValueError: no such model\nhint: an",
        ),
        ("run", "the engine vendor failed in vendor_.*: out of luck"),
    ],
)
def test_an_engine_that_fails_where_it_is_loaded(
    fails: Stage, message: str, tmp_path: Path
) -> None:
    vendors().save(tmp_path / "a.unity")
    register_engine(vendor(fails))
    with pytest.raises(UnityError, match=message):
        runtime.load(tmp_path / "a.unity")(X, W)


def test_an_engine_that_cannot_save(tmp_path: Path) -> None:
    with pytest.raises(UnityError, match=r"vendor can't save vendor_.*: no licence to save\nhint:"):
        vendors("save").save(tmp_path / "a.unity")
    assert not list(tmp_path.iterdir())
