"""A digest of the compiler: what it made once holds as long as the compiler is the same."""

from __future__ import annotations

import hashlib
import sys
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

from unity import errors
from unity.version import LOADED

_PACKAGES = ("llvmlite", "ml_dtypes", "numpy", "onnx", "sympy")
"""What it computes with."""


@lru_cache(maxsize=1)
def compiler_digest() -> str:
    """The digest of Unity's sources, and of the versions of Python and the packages it needs."""
    versions = (f"{name} {version(name)}" for name in _PACKAGES)
    return hashlib.sha256(repr((source_digest(), sys.version, *versions)).encode()).hexdigest()


@lru_cache(maxsize=1)
def source_digest() -> str:
    """The digest of every file of Unity's, by path and contents.

    Contents and not dates: an installation may give every file the same date. If files were written
    since this process loaded Unity (an update, an editor), what runs in it is neither the old nor
    the new ones: the digest is then one that no other process has.
    """
    root = Path(errors.__file__).parent
    places = [root, *(f.resolve() for f in sorted(root.iterdir()) if f.is_symlink())]
    digest = hashlib.sha256()
    for place in places:
        for file in sorted(place.rglob("*.py")):
            body, written = file.read_bytes(), file.stat().st_ctime
            if written > LOADED:
                return uuid4().hex
            digest.update(f"{file.relative_to(place)} {len(body)} ".encode())
            digest.update(body)
    return digest.hexdigest()
