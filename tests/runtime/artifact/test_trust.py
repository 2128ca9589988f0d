"""A file is a program only where one was asked for, and calls only what its loader knows."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import unity
from tests.bench import cnn
from unity import runtime
from unity.cli.app import app
from unity.errors import UnityError
from unity.runtime.artifact.naming import MODEL_SUFFIXES
from unity.runtime.executable import Executable
from unity.runtime.hosts import known as hosts
from unity.script import R, Tensor, dim, f32, function, module

from .forging import Forgery, forged
from .programs import negate_into, small, small_result

X = np.arange(12, dtype=np.float32).reshape(3, 4)
KEY, OTHER = b"k" * 32, b"o" * 100
n = dim("n")
did: list[str] = []


def command(text: str) -> Callable[..., object]:
    """What a forged record names: it would make a function of any text."""
    did.append(text)
    return negate_into


class Halves:
    @staticmethod
    def halve(source: np.ndarray, destination: np.ndarray) -> None:
        np.multiply(source, 0.5, out=destination)


def calling(host: Callable[..., object]) -> Executable:
    @function
    def main(x: f32[Tensor, n]) -> f32[Tensor, n]:
        return R.call_python(host, (x,), out=f32[Tensor, n])

    return unity.compile(module(main))


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("artifact") / "a.unity"
    calling(negate_into).save(path)
    return path.read_bytes()


@pytest.fixture(autouse=True)
def _nothing_done() -> Iterator[None]:
    did.clear()
    before = dict(hosts._provided)
    yield
    hosts._provided.clear()
    hosts._provided.update(before)


# ---------------------------------------------------------------------------------------- names


def invoked(command: str, path: Path) -> object:
    return CliRunner().invoke(app, [command, str(path)], catch_exceptions=False)


READERS: dict[str, Callable[[Path], object]] = {
    "unity.load": unity.load,
    "unity.compile": unity.compile,
    "unity.runtime.load": runtime.load,
    **{
        f"unity {name}": partial(invoked, name)
        for name in ("run", "bench", "check", "inspect", "explain", "compile", "bisect")
    },
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ["model.onnx", "model.ONNX", "weights.safetensors", "m.pt"])
def test_a_program_under_a_models_name_is_refused(
    reader: str, name: str, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UnityError) as error:
        READERS[reader](path)
    assert name in error.value.message
    assert "an executable" in error.value.message
    assert f"call it {path.stem}.unity" in str(error.value.hint)


def test_only_its_own_suffix_asks_for_a_program(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(UnityError, match=r"is no model: it holds an executable"):
        unity.load(path)
    runtime.load(path, hosts=[negate_into])  # asked for by the function's name
    (tmp_path / "a.UNITY").write_bytes(content)
    unity.load(tmp_path / "a.UNITY", hosts=[negate_into])


def test_a_model_under_a_programs_name_is_refused(tmp_path: Path) -> None:
    onnx.save(cnn.mlp(), tmp_path / "a.unity")
    for read in (unity.load, unity.compile):
        with pytest.raises(UnityError, match=r"a\.unity is no executable that Unity wrote"):
            read(tmp_path / "a.unity")


@pytest.mark.parametrize("suffix", sorted(MODEL_SUFFIXES))
def test_no_program_is_written_under_a_models_name(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(UnityError, match=r"(?s)has the name of a model.*call it m\.unity"):
        small().save(tmp_path / f"m{suffix}")
    assert not list(tmp_path.iterdir())


PATHS: dict[str, object] = {
    "a number": 3, "nothing": None, "bytes": b"a.unity", "no name": "", "the root": "/",
    "a NUL": "a\0.unity", "half a letter": "\ud800.unity",
}  # fmt: skip


@pytest.mark.parametrize("case", PATHS)
def test_what_is_no_path_is_refused(case: str) -> None:
    exe = small()
    uses: tuple[Any, ...] = (exe.save, exe.export_library, runtime.load)
    for use in uses:
        with pytest.raises(UnityError, match=r"expected text or a path|names no file"):
            use(PATHS[case])


# -------------------------------------------------------------------------------- what it calls


def test_python_functions_have_to_be_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.unity"
    path.write_bytes(content)
    with pytest.raises(UnityError) as error:
        runtime.load(path)
    assert f"{negate_into.__module__}.negate_into" in str(error.value)
    assert "load(path, hosts=[function])" in str(error.value)
    for exe in (unity.load(path, hosts=[negate_into]), runtime.load(path, hosts=(negate_into,))):
        np.testing.assert_array_equal(exe(X[0]), -X[0])
    assert runtime.provide_host(negate_into) is negate_into
    np.testing.assert_array_equal(runtime.load(path)(X[0]), -X[0])


def test_functions_of_classes_and_of_the_program_that_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling(Halves.halve).save(tmp_path / "a.unity")
    loaded = runtime.load(tmp_path / "a.unity", hosts=[Halves.halve])
    np.testing.assert_array_equal(loaded(X[0]), X[0] / 2)
    monkeypatch.setattr(negate_into, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "negate_into", negate_into, raising=False)
    calling(negate_into).save(tmp_path / "b.unity")
    loaded = runtime.load(tmp_path / "b.unity", hosts=[negate_into])
    np.testing.assert_array_equal(loaded(X[0]), -X[0])


@pytest.mark.parametrize("given", [3, "tests.f", [3], [lambda x: x], negate_into])
def test_hosts_that_are_none(given: Any, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.unity").write_bytes(content)
    with pytest.raises(UnityError, match=r"hosts=|no (Python )?function"):
        runtime.load(tmp_path / "a.unity", hosts=given)


RECORDS = {
    "a command": {"module": "os", "name": "system", "argument": "touch run"},
    "a module of the folder": {"module": "planted", "name": "f", "argument": ""},
    "a maker of this file": {"module": __name__, "name": "command", "argument": "it"},
    "an escape": {"module": "\x1b[31mred", "name": "f\n\x07", "argument": ""},
}


@pytest.mark.parametrize("case", RECORDS)
def test_what_a_file_names_is_neither_imported_nor_called(
    case: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(parts: Forgery) -> None:
        parts.manifest["hosts"] = [{"is": "HostRecord", **RECORDS[case]}]

    (tmp_path / "planted.py").write_text("open('run', 'w')\ndef f(*_): pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "a.unity"
    path.write_bytes(forged(content, change))
    with pytest.raises(UnityError, match="has not named or registered") as error:
        unity.load(path)
    assert str(error.value).replace("\n", "").isprintable()
    shown = CliRunner().invoke(app, ["inspect", str(path)], catch_exceptions=False).output
    assert "\x1b[31m" not in shown
    assert not did
    assert not (tmp_path / "run").exists()
    assert "planted" not in sys.modules


@pytest.mark.parametrize("named", ["./planted.so", "/planted.so", "../planted.so", "planted.so"])
def test_a_library_that_a_file_names_is_not_opened(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(parts: Forgery) -> None:
        parts.manifest["symbols"] = ["planted.f"]
        parts.manifest["libraries"] = [
            {"name": "planted", "forms": ["{}"], "threads": None, "hint": "", "file": named,
             "digest": "00" * 32}
        ]  # fmt: skip
        record = dict(parts.manifest["pieces"][0])
        parts.manifest["pieces"].append({**record, "name": "library/planted"})
        parts.pieces["library/planted"] = b""

    opened: list[object] = []
    monkeypatch.setattr("ctypes.CDLL", lambda *given: opened.append(given))
    (tmp_path / "planted.so").write_bytes(b"\x7fELF")
    small().save(tmp_path / "a.unity")
    path = tmp_path / "a.unity"
    path.write_bytes(forged(path.read_bytes(), change))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnityError, match=r"the library 'planted': register it"):
        unity.load(path)
    assert not opened


# ----------------------------------------------------------------------------------------- keys


def test_a_key_tells_who_wrote_a_file(tmp_path: Path) -> None:
    signed, plain = tmp_path / "signed.unity", tmp_path / "plain.unity"
    small().save(signed, key=KEY)
    small().save(plain)
    for loaded in (runtime.load(signed, key=KEY), unity.load(signed, key=KEY), unity.load(signed)):
        np.testing.assert_allclose(loaded(X), small_result(X), rtol=1e-6)
    with pytest.raises(UnityError, match=r"signed\.unity was written with another key, or changed"):
        unity.load(signed, key=OTHER)
    with pytest.raises(UnityError, match=r"plain\.unity was written without a key"):
        unity.load(plain, key=KEY)
    small().save(signed, key=OTHER)  # longer than BLAKE2b's keys
    np.testing.assert_allclose(unity.load(signed, key=OTHER)(X), small_result(X), rtol=1e-6)
    with pytest.raises(UnityError, match="another key"):
        unity.load(signed, key=OTHER[:99])


def test_no_byte_may_change_in_a_file_with_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.unity"
    small().save(path, key=KEY)
    content = path.read_bytes()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the file was looked at")

    monkeypatch.setattr("unity.runtime.artifact.read.from_metadata", never)
    monkeypatch.setattr("unity.runtime.artifact.read.instantiate", never)
    step = len(content) // 60
    places = {*range(step, len(content), step), 33, 97, len(content) - 1}
    for at in sorted(places):
        changed = bytearray(content)
        changed[at] ^= 1
        path.write_bytes(changed)
        with pytest.raises(UnityError, match=r"a key|another key"):
            runtime.load(path, key=KEY)
    for other in (content[:-1], content + b"\0"):
        path.write_bytes(other)
        with pytest.raises(UnityError, match="another key"):
            runtime.load(path, key=KEY)


@pytest.mark.parametrize("key", ["k" * 32, b"short", b"", 3])
def test_keys_that_are_none(key: object, tmp_path: Path) -> None:
    uses: tuple[Any, ...] = (small().save, runtime.load, unity.load)
    for use in uses:
        with pytest.raises(UnityError, match=r"a key is at least 16 bytes|expected bytes or None"):
            use(tmp_path / "a.unity", key=key)


# -------------------------------------------------------------------------------------- looking


def test_inspect_lists_what_would_be_called(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.unity"
    path.write_bytes(content)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("something was linked")

    monkeypatch.setattr("unity.runtime.instantiate.link", never)
    monkeypatch.setenv("COLUMNS", "300")
    shown = CliRunner().invoke(app, ["inspect", str(path)], catch_exceptions=False).output
    assert "tests.runtime.artifact.programs.negate_into" in shown
    assert "main(x: float32[n]) -> float32[n]" in shown
    assert "without a key" in shown
    assert "symbols" in shown
    explained = CliRunner().invoke(app, ["explain", str(path), "--json"], catch_exceptions=False)
    assert json.loads(explained.output)["policy"]


def test_the_command_line_names_functions(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.unity"
    path.write_bytes(content)
    name = f"{negate_into.__module__}.negate_into"
    run = ["run", str(path), "--dim", "n=3"]
    done = CliRunner().invoke(app, [*run, "--host", name], catch_exceptions=False)
    assert done.exit_code == 0
    for wrong in ("nowhere.f", "os.nothing", "negate", "os.sep"):
        with pytest.raises(UnityError, match=f"--host {wrong}"):
            CliRunner().invoke(app, [*run, "--host", wrong], catch_exceptions=False)
    assert os.path.exists(path)
