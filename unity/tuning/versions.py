"""Versions of packages, as text: other ones take other times."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def versions(*packages: str) -> str:
    """The versions of Unity, numpy and some other packages.

    >>> versions("no-such-package").rpartition(", ")[2].startswith("unity-mlc")
    True
    """
    found: list[str] = []
    for name in sorted({"unity-mlc", "numpy", *packages}):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} ?")
    return ", ".join(found)
