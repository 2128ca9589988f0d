"""A file to an executable: checked, mapped, linked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from os import PathLike
from pathlib import Path

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import Array, dtype
from unity.ir.target import Target
from unity.runtime import foreign
from unity.runtime.engine import Compiled, Loader, loader_of
from unity.runtime.engine_kernel import EngineCode
from unity.runtime.executable import Executable
from unity.runtime.foreign_library import ForeignLibrary, LibraryRecord
from unity.runtime.host import available_cpus
from unity.runtime.hosts import host_of
from unity.runtime.image import Image
from unity.runtime.instantiate import instantiate
from unity.runtime.native_info import API
from unity.runtime.program import ConstantInfo
from unity.runtime.program_json import from_json

from .checksum import checksum
from .container import read
from .manifest import EngineRecord, Manifest, damaged, from_metadata
from .match import check_target


def load(
    path: str | PathLike[str], *, threads: int | None = None, verify: bool = True
) -> Executable:
    """An executable from the file that `Executable.save` wrote.

    The compiler is not needed (operators that have no kernel import their definitions).

    The constants are mapped, not copied: processes that load the same file share them. The file
    must not be written to meanwhile; replacing it by another is fine.

    The file holds machine code, which is run: load no file that you would not run as a program.

    Args:
        path: The file.
        threads: How many threads it may use; if not given, as many as were asked for when it was
            compiled, or as many as this machine has cpus.
        verify: Whether to read all of the file and compare it with its checksums.

    Raises:
        UnityError: It is no artifact, damaged, of a newer version or for another machine, or a
            library or an engine that it needs is missing or fails.
    """
    if threads is not None and (type(threads) is not int or threads < 1):
        raise UnityError(f"threads={threads!r}", hint="at least 1; None for what was compiled for")
    where = Path(path)
    metadata, data = read(where)
    manifest = from_metadata(metadata, str(where))
    pieces = _pieces(manifest, data, str(where), verify)
    check_target(manifest.target, str(where))
    if threads is None:
        asked = dict(manifest.options).get("threads")
        threads = asked if isinstance(asked, int) else available_cpus()
    try:
        return instantiate(_image(manifest, pieces, where), threads)
    except UnityError as error:
        raise UnityError(f"can't load {where}: {error.message}", hint=error.hint) from error
    except RuntimeError as error:  # of the linker
        raise UnityError(f"can't load {where}: its code can't be linked: {error}") from error


def read_manifest(path: str | PathLike[str]) -> Manifest:
    """What an artifact says of itself; nothing of it is run.

    Raises:
        UnityError: It is no artifact, damaged, or of a newer version.
    """
    metadata, data = read(Path(path))
    manifest = from_metadata(metadata, str(path))
    _pieces(manifest, data, str(path), verify=False)
    return manifest


def _pieces(
    manifest: Manifest, data: memoryview, where: str, verify: bool
) -> dict[str, memoryview]:
    if data.nbytes < manifest.bytes:
        raise UnityError(
            f"{where} is cut short: it has {data.nbytes} of {manifest.bytes} bytes of data",
            hint="copy or compile it again",
        )
    if data.nbytes > manifest.bytes:
        raise damaged(where, "what follows its end")
    found = {p.name: data[p.offset : p.offset + p.bytes] for p in manifest.pieces}
    for piece in manifest.pieces if verify else ():
        if checksum(found[piece.name]) != piece.checksum:
            raise damaged(where, piece.name)
    return found


def _image(manifest: Manifest, pieces: Mapping[str, memoryview], path: Path) -> Image:
    program = from_json(bytes(pieces["program"]).decode())
    called = () if manifest.native is None else manifest.native.api
    if not set(called) <= set(API):
        unknown = ", ".join(sorted(set(called) - set(API)))
        raise UnityError(f"its code calls {unknown}, which this Unity has not", hint="update Unity")
    constants = [_constant(c, pieces[f"constant/{i}"]) for i, c in enumerate(program.constants)]
    target = manifest.target
    return Image(
        program=program,
        target=target,
        objects=[bytes(pieces[f"object/{i}"]) for i in range(manifest.objects)],
        pool=bytes(pieces["pool"]),
        constants=constants,
        hosts=[host_of(record) for record in manifest.hosts],
        native=manifest.native,
        native_object=bytes(pieces["native"]),
        symbols=manifest.symbols,
        libraries={
            record.name: foreign.registered(record.name)
            or _library(record, bytes(pieces[f"library/{record.name}"]), path.parent)
            for record in manifest.libraries
        },
        engines=tuple(
            _engine(record, bytes(pieces[f"engine/{record.name}"]), target)
            for record in manifest.engines
        ),
        explanation=bytes(pieces["explanation"]).decode(),
        options=dict(manifest.options),
    )


def _constant(info: ConstantInfo, data: memoryview) -> Array:
    return np.frombuffer(data, dtype(info.dtype).numpy).reshape(info.shape)


@cache
def _library(record: LibraryRecord, serial: bytes, folder: Path) -> ForeignLibrary:
    """A library where it was when the artifact was made, beside the artifact, or by its name."""
    names = [Path(p).name for p in record.places if isinstance(p, str)]
    places = (*record.places, *(folder.absolute() / n for n in names), *names)
    return ForeignLibrary(
        record.name,
        tuple(dict.fromkeys(places)),
        record.forms,
        record.threads,
        record.hint,
        serial,
    )


def _engine(record: EngineRecord, data: bytes, target: Target) -> EngineCode:
    loader = loader_of(record.engine, record.module)

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
