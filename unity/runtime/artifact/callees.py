"""What an artifact calls beside its own code: Python functions, libraries, engines.

All of it is found among what the program that loads the artifact knows: what it named or
registered, what its environment's packages offer, and our own; of libraries also the very file that
the artifact was made with, if it lies beside it. Whether that is so for everything is seen before
anything of it is imported, opened or called.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from unity.errors import UnityError, UnsupportedError
from unity.machine.target import Target
from unity.runtime import hosts
from unity.runtime.engines import engine
from unity.runtime.engines.engine import ENTRY_POINTS, Compiled, Loader, loader_of
from unity.runtime.engines.engine_kernel import EngineCode
from unity.runtime.hosts import Key, host_of
from unity.runtime.linking import foreign
from unity.runtime.linking.foreign import Provider
from unity.runtime.linking.foreign_library import ForeignLibrary, LibraryRecord, digest_of
from unity.runtime.linking.libraries import LIBRARIES
from unity.runtime.vm import Host

from .manifest import EngineRecord, Manifest


@dataclass(frozen=True, slots=True)
class Callees:
    """What an artifact calls, found."""

    hosts: tuple[Host, ...]
    libraries: Mapping[str, Provider]
    engines: tuple[EngineCode, ...]


def require_known(manifest: Manifest, known: Mapping[Key, Host], folder: Path) -> None:
    """See that this program knows all that an artifact calls. Nothing is imported or opened.

    Args:
        manifest: The artifact's.
        known: The Python functions that it may call.
        folder: Where it lies.

    Raises:
        UnsupportedError: Something is not known; all of it is listed.
    """
    gaps = list(_gaps(manifest, known, folder))
    if gaps:
        raise UnsupportedError("it calls what this program has not named or registered", gaps)


def find(
    manifest: Manifest,
    pieces: Mapping[str, memoryview],
    known: Mapping[Key, Host],
    folder: Path,
) -> Callees:
    """All that an artifact calls, which is known.

    Raises:
        UnityError: A library or an engine can't be loaded, or an operator is unknown.
    """
    return Callees(
        tuple(host_of(record, known) for record in manifest.hosts),
        {
            record.name: _library(record, bytes(pieces[f"library/{record.name}"]), folder)
            for record in manifest.libraries
        },
        tuple(
            _engine(record, bytes(pieces[f"engine/{record.name}"]), manifest.target)
            for record in manifest.engines
        ),
    )


def _gaps(manifest: Manifest, known: Mapping[Key, Host], folder: Path) -> Iterator[str]:
    for host in dict.fromkeys(manifest.hosts):
        if not hosts.is_known(host, known):
            yield (
                f"the Python function {str(host)!r}: name it, load(path, hosts=[function]), or "
                "decorate it with unity.runtime.provide_host"
            )
    for library in manifest.libraries:
        if not _is_known(library, folder):
            beside = f", or put {library.file!r} beside it as it was" if library.file else ""
            yield (
                f"the library {library.name!r}: register it, unity.runtime.ForeignLibrary"
                f"({library.name!r}, [file]).register(){beside} ({library.hint!r})"
            )
    for name, module in dict.fromkeys((e.engine, e.module) for e in manifest.engines):
        if not engine.is_known(name):
            where = f"import {module!r}, and " if module not in ("", "__main__") else ""
            yield (
                f"the engine {name!r}: {where}register it (unity.runtime.provide_loader), or "
                f"install the package that has it as an entry point of {ENTRY_POINTS!r}"
            )


def _is_known(record: LibraryRecord, folder: Path) -> bool:
    there = foreign.registered(record.name) is not None or record.name in LIBRARIES
    return there or _beside(record, folder) is not None


def _beside(record: LibraryRecord, folder: Path) -> Path | None:
    """The library's own file in the artifact's folder; None if there is none or another."""
    file = folder / record.file
    if not record.digest or file.parent != folder or not file.is_file():
        return None
    return file if digest_of(file) == record.digest else None


def _library(record: LibraryRecord, serial: bytes, folder: Path) -> Provider:
    found = foreign.registered(record.name)
    if found is not None:
        return found
    if record.name in LIBRARIES:
        return _own(record.name, serial)
    file = _beside(record, folder)
    assert file is not None
    return _opened(record, serial, file.absolute())


@cache
def _own(name: str, serial: bytes) -> ForeignLibrary:
    return replace(LIBRARIES[name], serial=serial)


@cache
def _opened(record: LibraryRecord, serial: bytes, file: Path) -> ForeignLibrary:
    return ForeignLibrary(record.name, (file,), record.forms, record.threads, record.hint, serial)


def _engine(record: EngineRecord, data: bytes, target: Target) -> EngineCode:
    loader = loader_of(record.engine)

    @cache
    def make(threads: int) -> Compiled:
        return _loaded(loader, record, data, target, threads)

    return EngineCode(
        record.name, record.engine, record.inputs, record.dtypes, record.ranks, make, record.module
    )


def _loaded(
    loader: Loader, record: EngineRecord, data: bytes, target: Target, threads: int
) -> Compiled:
    try:
        return loader.load(data, target, threads)
    except UnityError:
        raise
    except Exception as error:
        raise UnityError(
            f"the engine {record.engine} can't load {record.name}: {type(error).__name__}: {error}",
            hint="another version of it may have saved this; compile the model again",
        ) from error
