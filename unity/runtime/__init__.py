"""Running what was compiled: executables, the VM, artifacts. Needs no compiler.

``unity.runtime.load(path)`` loads an artifact; it is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unity.runtime.artifact.read import load as load
    from unity.runtime.engines.engine import provide_loader as provide_loader
    from unity.runtime.hosts import provide_host as provide_host
    from unity.runtime.linking.foreign_library import ForeignLibrary as ForeignLibrary

__all__ = ["ForeignLibrary", "load", "provide_host", "provide_loader"]
_HOMES = {
    "ForeignLibrary": "unity.runtime.linking.foreign_library",
    "load": "unity.runtime.artifact.read",
    "provide_host": "unity.runtime.hosts",
    "provide_loader": "unity.runtime.engines.engine",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'unity.runtime' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
