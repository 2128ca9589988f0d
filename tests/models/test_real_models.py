"""Real models that ship inside PyPI packages, through ``unity run`` and against onnxruntime.

CONTRIBUTING.md says how to install those, without what they depend on.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import unity
from tests.extras import file_in_package

pytestmark = pytest.mark.packages

Feeds = dict[str, npt.NDArray[np.float32]]

# package, file in it, the sizes of its symbols to try
MODELS: dict[str, tuple[str, str, dict[str, int]]] = {
    "wake_word": ("openwakeword", "resources/models/alexa_v0.1.onnx", {}),
    "speech_embedding": ("openwakeword", "resources/models/embedding_model.onnx", {}),
    "mel_spectrogram": ("openwakeword", "resources/models/melspectrogram.onnx", {"samples": 1760}),
    "text_direction": (
        "rapidocr_onnxruntime",
        "models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        {},
    ),
}


def path_of(case: str) -> Path:
    package, file, _ = MODELS[case]
    return file_in_package(f"{package}/{file}")


def feeds_for(path: Path, sizes: dict[str, int]) -> Feeds:
    ort = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    found: Feeds = {}
    for given in session.get_inputs():
        shape = [d if isinstance(d, int) else sizes.get(str(d), 1) for d in given.shape]
        if "cls_infer" in path.name:
            shape = [2, 3, 48, 192]
        found[given.name] = rng.standard_normal(shape, np.float32)
    return found


@pytest.mark.long("a model as it is published, compiled and run by two engines")
@pytest.mark.parametrize("case", MODELS)
def test_a_real_model(case: str) -> None:
    ort = pytest.importorskip("onnxruntime")
    path = path_of(case)
    feeds = feeds_for(path, MODELS[case][2])
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    want = session.run(None, feeds)
    got = list(unity.compile(path).run(feeds).values())
    assert len(got) == len(want)
    for ours, theirs in zip(got, want, strict=True):
        a, b = np.asarray(ours, np.float64), theirs.astype(np.float64)
        assert a.shape == b.shape
        assert np.abs(a - b).max() <= 1e-4 * max(np.abs(b).max(), 1e-30)


def test_unity_run_stores_what_a_model_gives(tmp_path: Path) -> None:
    path = path_of("wake_word")
    feeds = feeds_for(path, {})
    np.savez(tmp_path / "in.npz", allow_pickle=False, **feeds)
    command = [sys.executable, "-m", "unity.cli.app", "run", str(path)]
    files = ["-i", str(tmp_path / "in.npz"), "-o", str(tmp_path / "out.npz")]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    want = list(unity.compile(path).run(feeds).values())
    with np.load(tmp_path / "out.npz") as stored:
        for name, value in zip(stored.files, want, strict=True):
            np.testing.assert_array_equal(stored[name], value)
