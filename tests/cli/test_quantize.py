"""`unity quantize`: samples in files, what is printed and written, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import unity
import unity.demo
from unity.cli.app import app
from unity.errors import UnityError

FOLDER = Path(unity.demo.__file__).parent
DIGITS = str(FOLDER / "digits.onnx")


def said(*args: str) -> str:
    """What the command prints."""
    result = CliRunner().invoke(app, ["quantize", *args])
    if result.exception is not None:
        raise result.exception
    return result.output


def test_a_model_and_samples(tmp_path: Path) -> None:
    with np.load(FOLDER / "digits.npz") as held_out:
        images, labels = held_out["images"], held_out["labels"]
    samples, to = tmp_path / "samples.npz", tmp_path / "small.onnx"
    np.savez(samples, image=images[:16, None])
    text = said(DIGITS, str(samples), "-o", str(to))
    assert "SQNR" in text
    assert "small.onnx" in text
    exe = unity.compile(to)
    got = exe(images)
    assert float((np.argmax(got, 1) == labels).mean()) > 0.95
    with np.load(samples) as file:
        np.savez(samples, image=file["image"][:, 0])  # of the input's rank: one batch
    assert "same argmax" in said(DIGITS, str(samples), "-o", str(to))


def test_what_is_refused(tmp_path: Path) -> None:
    samples, to = tmp_path / "samples.npz", str(tmp_path / "small.onnx")
    with pytest.raises(UnityError, match="unity quantize needs samples") as found:
        said(DIGITS, "-o", to)
    assert "--weights int4" in str(found.value)
    with pytest.raises(UnityError, match="is the model itself"):
        said(DIGITS, str(samples), "-o", DIGITS)
    np.save(tmp_path / "one.npy", np.zeros(3, np.float32))
    with pytest.raises(UnityError, match="it holds one array, which has no name"):
        said(DIGITS, str(tmp_path / "one.npy"), "-o", to)
    samples.write_bytes(b"nothing")
    with pytest.raises(UnityError, match="cannot read the samples"):
        said(DIGITS, str(samples), "-o", to)
    np.savez(samples, other=np.zeros(3, np.float32))
    with pytest.raises(UnityError, match="the model has no input 'other'"):
        said(DIGITS, str(samples), "-o", to)
    with pytest.raises(UnityError, match="the suffix says what is written"):
        said(DIGITS, str(samples), "-o", "small.unity")
