"""External engines at run time: subgraphs that were compiled by one, and who loads saved ones.

What an engine needs to run and to load lives here or in its own package, so that an artifact needs
no compiler. `unity.transform.graph.resolve.Engine` is what it needs besides to compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module, metadata
from typing import Protocol, cast

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.machine.target import Target

ENTRY_POINTS = "unity.engines"
"""The group of entry points by which a package says that it has an engine, ``name = module:it``."""
_OURS = {
    "onnxruntime": "unity.runtime.engines.onnxruntime",
    "openvino": "unity.runtime.engines.openvino",
}


class Compiled(Protocol):
    """A subgraph that an engine has compiled."""

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the outputs, in place, from the inputs; contiguous arrays of the right shapes.

        The arrays' memory is not the engine's: it may not be kept after the call.
        """
        ...

    def save(self) -> bytes:
        """What `Loader.load` makes the same from."""
        ...


class Loader(Protocol):
    """What loads subgraphs that an engine compiled and saved."""

    @property
    def name(self) -> str:
        """What the engine is called."""
        ...

    def missing(self) -> str | None:
        """Why it can't be used here (a package is not installed); None if it can."""
        ...

    def load(self, data: bytes, target: Target, threads: int) -> Compiled:
        """What `Compiled.save` gave."""
        ...


_loaders: dict[str, Loader] = {}


@public
def provide_loader(loader: Loader) -> None:
    """Make known who loads an engine's subgraphs; a later one of the same name is taken instead."""
    _loaders[loader.name] = loader


def is_known(name: str) -> bool:
    """Whether somebody loads an engine's subgraphs here: registered, ours or an installed package.

    Nothing is imported to know it.
    """
    return name in _loaders or name in _OURS or bool(_entry_points(name))


def loader_of(name: str) -> Loader:
    """Who loads an engine's subgraphs, which `is_known`.

    Raises:
        UnityError: Something that the engine needs is missing.
    """
    found = _loaders.get(name) or _own(name) or _installed(name)
    reason = found.missing()
    if reason is not None:
        raise UnityError(f"the engine {name!r} can't be used: {reason}")
    return found


def _own(name: str) -> Loader | None:
    return cast("Loader", vars(import_module(_OURS[name]))["LOADER"]) if name in _OURS else None


def _installed(name: str) -> Loader:
    (point, *_) = _entry_points(name)
    try:
        return cast("Loader", point.load())
    except Exception as error:
        raise UnityError(
            f"the engine {name!r} of {point.value} can't be loaded: {type(error).__name__}: {error}"
        ) from error


def _entry_points(name: str) -> Sequence[metadata.EntryPoint]:
    return list(metadata.entry_points(group=ENTRY_POINTS, name=name))
