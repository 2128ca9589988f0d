"""What does not fit is refused, with the reason; no damage gives a wrong answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import unity
from unity import runtime
from unity.errors import UnityError
from unity.machine.target import Target
from unity.runtime.artifact import match
from unity.runtime.artifact.manifest import FORMAT
from unity.runtime.artifact.read import read_manifest
from unity.script import parse

from .forging import forged, refused
from .programs import SMALL, small, small_result

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("artifact") / "a.unity"
    exe = unity.compile(parse(SMALL.replace("1.0", 'R.const("c")'), {"c": np.ones(4, np.float32)}))
    exe.save(path)
    return path.read_bytes()


def changed(content: bytes, change: Callable[[dict[str, Any], dict[str, str]], None]) -> bytes:
    """The artifact with a changed manifest, whose checksum fits."""
    return forged(content, lambda parts: change(parts.manifest, parts.metadata))


def test_another_processor(content: bytes, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any], _: dict[str, str]) -> None:
        manifest["target"]["triple"] = "riscv64-unknown-linux-gnu"

    assert "is for riscv64-unknown-linux-gnu, this is" in refused(
        changed(content, change), tmp_path
    )


def test_missing_features_are_named(content: bytes, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any], _: dict[str, str]) -> None:
        manifest["target"]["features"] += ["avx9000", "zmm64", "sgx"]

    text = refused(changed(content, change), tmp_path)
    assert "needs what this processor has not: avx9000, zmm64\n" in text


def test_vendors_and_versions_of_systems_are_no_reason() -> None:
    target = Target("cpu", "x86_64-pc-linux-gnu", "generic", ())
    for triple, alike in (
        ("x86_64-unknown-linux-gnu", True),
        ("x86_64-unknown-linux-musl", False),
        ("aarch64-unknown-linux-gnu", False),
        ("x86_64-apple-darwin22.1.0", False),
    ):
        assert (match._system(target.triple) == match._system(triple)) is alike
    assert match._system("arm64-apple-darwin22.1.0") == match._system("aarch64-apple-darwin23")


def test_a_newer_format(content: bytes, tmp_path: Path) -> None:
    def change(_: dict[str, Any], metadata: dict[str, str]) -> None:
        metadata["version"] = str(FORMAT + 1)

    text = refused(changed(content, change), tmp_path)
    assert f"is an executable of format {FORMAT + 1}; this Unity reads {FORMAT}\nhint: upd" in text


def test_a_manifest_of_another_unity(content: bytes, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any], _: dict[str, str]) -> None:
        manifest["target"]["tensor_cores"] = 4

    text = refused(changed(content, change), tmp_path)
    assert 'its manifest is of another kind: target: Target has no field "tensor_cores"' in text
    assert "\nhint: update Unity, or compile the model again" in text


def test_newer_needs_of_the_runtime(content: bytes, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any], _: dict[str, str]) -> None:
        manifest["native"]["api"].append("PyNewThing")

    assert "its code calls PyNewThing, which this Unity has not" in refused(
        changed(content, change), tmp_path
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no executable that Unity wrote (0 bytes)"),
        (b"\x08\x03\x12\x04" * 100, "wrote (400 bytes)\nhint: executable.save(path) writes"),
        ((2).to_bytes(8, "little") + b"{}", "header can't be read"),
        ((10).to_bytes(8, "little") + b"{", "is cut short: its header alone is 10 bytes"),
        ((19).to_bytes(8, "little") + b'{"__metadata__":{}}', "but a file of safetensors"),
    ],
)
def test_what_is_no_artifact(content: bytes, message: str, tmp_path: Path) -> None:
    assert message in refused(content, tmp_path)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnityError, match=r"can't read .*nothing.unity: No such file"):
        runtime.load(tmp_path / "nothing.unity")
    with pytest.raises(UnityError, match=r"can't read .*: Is a directory"):
        runtime.load(tmp_path)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UnityError, match=r"can't write .*no/a.unity: No such file"):
        small().save(tmp_path / "no" / "a.unity")


def test_a_save_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.unity"
    small().save(path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(UnityError, match="No space left"):
            small().save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_truncation_and_additions(content: bytes, tmp_path: Path) -> None:
    assert "is cut short" in refused(content[:-1], tmp_path)
    assert "is damaged: what follows its end" in refused(content + b"\0", tmp_path)


@pytest.mark.parametrize("seed", range(120))
def test_damage_is_refused_or_does_no_harm(seed: int, content: bytes, tmp_path: Path) -> None:
    rng = Random(seed)
    damaged = bytearray(content)
    match seed % 4:
        case 0:
            del damaged[rng.randrange(len(damaged)) :]
        case 1:
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        case 2:
            for _ in range(rng.randint(2, 200)):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        case _:
            at, length = rng.randrange(len(damaged)), rng.randint(1, 5000)
            damaged[at : at + length] = bytes(len(damaged[at : at + length]))
    path = tmp_path / "a.unity"
    path.write_bytes(damaged)
    try:
        loaded = runtime.load(path)
    except UnityError:
        return
    np.testing.assert_allclose(loaded(X), small_result(X), rtol=1e-6)


def test_every_byte_that_counts_is_checked(content: bytes, tmp_path: Path) -> None:
    """Of the data all but the gaps between pieces."""
    path = tmp_path / "a.unity"
    path.write_bytes(content)
    manifest = read_manifest(path)
    start = 8 + int.from_bytes(content[:8], "little")
    for piece in manifest.pieces:
        if not piece.bytes:
            continue
        for at in {piece.offset, piece.offset + piece.bytes // 2, piece.offset + piece.bytes - 1}:
            damaged = bytearray(content)
            damaged[start + at] ^= 0x10
            assert f"is damaged: {piece.name} is not" in refused(bytes(damaged), tmp_path)


def test_damage_that_nobody_looked_for_is_the_callers_wish(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.unity"
    path.write_bytes(content)
    np.testing.assert_allclose(runtime.load(path, verify=False)(X), small_result(X), rtol=1e-6)


def test_a_target_of_less_runs_here(tmp_path: Path) -> None:
    """Code for a plainer machine of this kind is at home on this one."""
    from unity.codegen.llvm import host_target

    here = host_target()
    fewer = tuple(f for f in here.features if "512" not in f and "amx" not in f)
    plain = replace(here, features=fewer, vector_bits=128, vector_registers=16, threads=1)
    exe = unity.compile(parse(SMALL), plain)
    exe.save(tmp_path / "a.unity")
    loaded = runtime.load(tmp_path / "a.unity")
    assert loaded.threads == 1
    np.testing.assert_allclose(loaded(X), small_result(X), rtol=1e-6)
