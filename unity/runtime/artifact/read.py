"""A file to an executable: checked, mapped, linked.

Nothing that the file says is done before all of it has been checked: its code with a key, if one is
given; the types of its manifest and its bytecode; its checksums; the machine; and that all it calls
is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from unity.arguments import public
from unity.errors import UnityError, UnsupportedError
from unity.ir.dtype import Array, dtype
from unity.runtime.bytecode import ConstantInfo, Program
from unity.runtime.bytecode.program_json import from_json
from unity.runtime.bytecode.verify import MalformedError, verify_program
from unity.runtime.executable import Executable
from unity.runtime.explanation import Explanation
from unity.runtime.host import available_cpus
from unity.runtime.hosts import known_hosts
from unity.runtime.image import Image
from unity.runtime.instantiate import instantiate

from .authentic import FIELD, checked_key
from .callees import Callees, find, require_known
from .checksum import checksum
from .consistent import check_pieces, check_program, check_references, unknown_needs
from .container import read
from .manifest import Manifest, damaged, from_metadata, malformed
from .match import check_target
from .naming import path_of, require_program_name


@public
def load(
    path: str | PathLike[str],
    *,
    hosts: Iterable[Callable[..., object]] = (),
    key: bytes | None = None,
    threads: int | None = None,
    verify: bool = True,
) -> Executable:
    """An executable from the file that `Executable.save` wrote.

    The compiler is not needed (operators that have no kernel import their definitions).

    The constants are mapped, not copied: processes that load the same file share them. The file
    must not be written to meanwhile; replacing it by another is fine.

    The file holds machine code: load no file that you would not run as a program. What it names
    beside that is not believed: it calls the Python functions in `hosts` and those provided by
    `unity.runtime.provide_host`, libraries and engines that are registered, that an installed
    package offers or that are Unity's own, and a library's very file beside it. With `key` it is
    loaded only if it is as somebody wrote it who has the key.

    Args:
        path: The file; of any name that no model has.
        hosts: The Python functions that it may call.
        key: What it was saved with; a file that was saved without it is refused.
        threads: How many threads it may use; if not given, as many as were asked for when it was
            compiled, or as many as this machine has cpus.
        verify: Whether to read all of the file and compare it with its checksums.

    Raises:
        UnityError: It is no executable, damaged, changed, of a newer version or for another
            machine; it calls what is not known here; or a library or an engine that it needs is
            missing or fails.
    """
    if threads is not None and (type(threads) is not int or threads < 1):
        raise UnityError(f"threads={threads!r}", hint="at least 1; None for what was compiled for")
    where = path_of(path)
    require_program_name(where)
    known = known_hosts(hosts)
    manifest, pieces = _read(where, None if key is None else checked_key(key), verify)
    check_target(manifest.target, str(where))
    program = _program(manifest, pieces, where)
    if threads is None:
        asked = dict(manifest.options).get("threads")
        threads = asked if isinstance(asked, int) else available_cpus()
    try:
        require_known(manifest, known, where.parent)
        callees = find(manifest, pieces, known, where.parent)
        return instantiate(_image(manifest, program, pieces, callees), threads)
    except UnsupportedError as error:
        raise UnsupportedError(f"can't load {where}: {error.args[0]}", hint=error.hint) from error
    except UnityError as error:
        raise UnityError(f"can't load {where}: {error.message}", hint=error.hint) from error
    except RuntimeError as error:  # of the linker
        raise UnityError(f"can't load {where}: its code can't be linked: {error}") from error


def read_own(path: Path) -> Image:
    """The image in a file of this installation's own, which it wrote and put away itself.

    It is checked like any other; it calls nothing that is not Unity's.

    Raises:
        UnityError: It is damaged, of another version, or calls what others have.
    """
    manifest, pieces = _read(path, None, verify=True)
    program = _program(manifest, pieces, path)
    require_known(manifest, {}, path.parent)
    return _image(manifest, program, pieces, find(manifest, pieces, {}, path.parent))


def read_manifest(path: str | PathLike[str]) -> Manifest:
    """What an artifact says of itself; nothing of it is run.

    Raises:
        UnityError: It is no artifact, damaged, or of a newer version.
    """
    return _read(path_of(path), None, verify=False)[0]


@dataclass(frozen=True, slots=True)
class Contents:
    """What an artifact holds.

    Attributes:
        signed: Whether it was written with a key; which one, only who has it can tell.
    """

    manifest: Manifest
    program: Program
    signed: bool


def read_contents(path: str | PathLike[str]) -> Contents:
    """What an artifact holds, checked as `load` does, for any machine; nothing of it is run.

    Raises:
        UnityError: It is no artifact, damaged, or of a newer version.
    """
    where = path_of(path)
    manifest, pieces = _read(where, None, verify=True)
    signed = FIELD in read(where)[0]
    return Contents(manifest, _program(manifest, pieces, where), signed)


def read_explanation(path: str | PathLike[str]) -> Explanation:
    """What call sites of an artifact were resolved to; nothing of it is run.

    Raises:
        UnityError: It is no artifact, damaged, or of a newer version.
    """
    _, pieces = _read(path_of(path), None, verify=True)
    return Explanation.stored(bytes(pieces["explanation"]))


def _read(path: Path, key: bytes | None, verify: bool) -> tuple[Manifest, dict[str, memoryview]]:
    """The manifest and the pieces, which fit each other."""
    where = str(path)
    metadata, data = read(path, key)
    manifest = from_metadata(metadata, where)
    if data.nbytes < manifest.bytes:
        raise UnityError(
            f"{where} is cut short: it has {data.nbytes} of {manifest.bytes} bytes of data",
            hint="copy or compile it again",
        )
    if data.nbytes > manifest.bytes:
        raise damaged(where, "what follows its end")
    try:
        check_pieces(manifest, data.nbytes)
        check_references(manifest)
    except MalformedError as error:
        raise malformed(where, error.message) from error
    found = {p.name: data[p.offset : p.offset + p.bytes] for p in manifest.pieces}
    for piece in manifest.pieces if verify else ():
        if checksum(found[piece.name]) != piece.checksum:
            raise damaged(where, piece.name)
    return manifest, found


def _program(manifest: Manifest, pieces: Mapping[str, memoryview], path: Path) -> Program:
    """The bytecode, which is well formed and fits the manifest."""
    unknown = unknown_needs(manifest)
    if unknown:
        raise UnityError(
            f"can't load {path}: its code calls {', '.join(unknown)}, which this Unity has not",
            hint="update Unity",
        )
    try:
        program = from_json(bytes(pieces["program"]))
        verify_program(program)
        check_program(manifest, program, pieces)
    except MalformedError as error:
        raise malformed(str(path), error.message) from error
    except UnityError as error:
        raise UnityError(f"can't load {path}: {error.message}", hint=error.hint) from error
    return program


def _image(
    manifest: Manifest, program: Program, pieces: Mapping[str, memoryview], callees: Callees
) -> Image:
    return Image(
        program=program,
        target=manifest.target,
        objects=[bytes(pieces[f"object/{i}"]) for i in range(manifest.objects)],
        pool=bytes(pieces["pool"]),
        constants=[_constant(c, pieces[f"constant/{i}"]) for i, c in enumerate(program.constants)],
        hosts=callees.hosts,
        native=manifest.native,
        native_object=bytes(pieces["native"]),
        symbols=manifest.symbols,
        libraries=callees.libraries,
        engines=callees.engines,
        explanation=bytes(pieces["explanation"]).decode(errors="replace"),
        options=dict(manifest.options),
    )


def _constant(info: ConstantInfo, data: memoryview) -> Array:
    return np.frombuffer(data, dtype(info.dtype).numpy).reshape(info.shape)
