"""What some tests need beyond the packages that the README's command installs.

Tests marked `torch` compare with it, tests marked `packages` run models that ship inside PyPI
packages, tests marked `tuning` learn cost models or measure on other machines. Without ``--extras``
they are skipped where something is missing; with it they alone run, and nothing may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import pytest

NEEDED = {
    "torch": ("torch",),
    "packages": ("openwakeword", "rapidocr_onnxruntime"),
    "tuning": ("xgboost", "distributed"),
}
"""The packages behind each marker."""

IMPORT_TORCH = ("bench/torch_model.py", "transform/pattern/torch_models.py")
"""Modules that import torch at once, so that doctests may not collect them without it."""


def missing(markers: Iterable[str] = tuple(NEEDED)) -> list[str]:
    """The packages behind some markers that are not installed."""
    return [p for marker in markers for p in NEEDED[marker] if find_spec(p) is None]


def may_need(path: Path) -> bool:
    """Whether a file may hold tests that need more, by its text; folders may."""
    return path.is_dir() or any(f"mark.{marker}" in path.read_text() for marker in NEEDED)


def prepare(items: list[pytest.Item], only: bool) -> list[pytest.Item]:
    """Skip tests that miss a package, or (`only`) take those that need one; give the others."""
    others: list[pytest.Item] = []
    for item in items:
        markers = [m for m in NEEDED if item.get_closest_marker(m)]
        if only and not markers:
            others.append(item)
        elif names := missing(markers):
            reason = f"{', '.join(names)}: not installed (CONTRIBUTING.md says how)"
            item.add_marker(pytest.mark.skip(reason=reason))
    return others


def file_in_package(path: str) -> Path:
    """A file in an installed package, by its path from the package's name on."""
    package, _, file = path.partition("/")
    found = find_spec(package)
    assert found is not None, f"a test that reads {path} must be marked `packages`"
    assert found.submodule_search_locations
    return Path(found.submodule_search_locations[0]) / file
