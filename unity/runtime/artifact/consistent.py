"""Whether a file's manifest, its program and its pieces fit each other.

Checksums tell of accidents. These checks tell of files that somebody wrote or changed by hand, and
whose checksums fit: each ends in an error that says what is wrong, before the file is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from unity.ir.arrays.aligned import LINE
from unity.ir.dtype import NAMES, dtype
from unity.runtime.bytecode import ConstantInfo, Program
from unity.runtime.bytecode.verify import MalformedError
from unity.runtime.linking.foreign import library_of
from unity.runtime.native_info import API

from .manifest import Manifest

_MOST_THREADS = 2**31 - 1  # as C counts them; the pool has its own limit


def check_pieces(manifest: Manifest, available: int) -> None:
    """See that the pieces are those that the manifest needs, and lie in the file.

    Args:
        manifest: What the file says of itself.
        available: How many bytes of data there are.

    Raises:
        MalformedError: A piece is missing, is one too many, or lies elsewhere.
    """
    names = [piece.name for piece in manifest.pieces]
    _require_different("pieces", names)
    _require_different("libraries", [record.name for record in manifest.libraries])
    _require_different("engines' kernels", [record.name for record in manifest.engines])
    for piece in manifest.pieces:
        if piece.offset % LINE or piece.offset + piece.bytes > available:
            raise MalformedError(
                f"the piece {piece.name!r} is said to lie at {piece.offset}, {piece.bytes} bytes "
                f"long, of {available}"
            )
    objects = [name for name in names if name.startswith("object/")]
    constants = [name for name in names if name.startswith("constant/")]
    if len(objects) != manifest.objects:
        raise MalformedError(f"there are {len(objects)} of {manifest.objects} objects")
    needed = [
        "program", "explanation", "pool", "native",
        *(f"object/{i}" for i in range(len(objects))),
        *(f"constant/{i}" for i in range(len(constants))),
        *(f"library/{record.name}" for record in manifest.libraries),
        *(f"engine/{record.name}" for record in manifest.engines),
    ]  # fmt: skip
    for name in needed:
        if name not in names:
            raise MalformedError(f"the piece {name!r} is missing")
    if len(names) != len(needed):
        extra = next(name for name in names if name not in needed)
        raise MalformedError(f"nothing needs the piece {extra!r}")


def check_references(manifest: Manifest) -> None:
    """See that what the manifest names is among what it lists.

    Raises:
        MalformedError: It is not.
    """
    threads = dict(manifest.options).get("threads")
    if threads is not None and not (type(threads) is int and 1 <= threads <= _MOST_THREADS):
        raise MalformedError(f"it was compiled for {threads!r} threads")
    libraries = {record.name for record in manifest.libraries}
    for symbol in manifest.symbols:
        if library_of(symbol) not in libraries:
            raise MalformedError(f"the library of the symbol {symbol!r} is not listed")
    for record in manifest.libraries:
        for form in record.forms:
            if form.count("{}") != 1 or set("{}") & set(form.replace("{}", "")):
                raise MalformedError(f"functions of {record.name!r} can't be written {form!r}")
    for engine in manifest.engines:
        kinds, ranks = len(engine.dtypes), len(engine.ranks)
        if kinds != ranks or engine.inputs > kinds or not NAMES.issuperset(engine.dtypes):
            raise MalformedError(f"the tensors of the engine's kernel {engine.name!r} are none")
    native = manifest.native
    if native is not None and not NAMES.issuperset(native.dtypes):
        raise MalformedError("a dtype of the native functions is unknown")


def check_program(manifest: Manifest, program: Program, pieces: Mapping[str, memoryview]) -> None:
    """See that the manifest is that of the program, which is verified by itself.

    Raises:
        UnityError: It is not.
    """
    _check_count("constants", len(program.constants), sum("constant/" in name for name in pieces))
    _check_count("host functions", len(program.hosts), len(manifest.hosts))
    for i, constant in enumerate(program.constants):
        _check_constant(constant, pieces[f"constant/{i}"])
    engines = {record.name: record for record in manifest.engines}
    for kernel in program.kernels:
        record = engines.get(kernel.name)
        if kernel.engine != ("" if record is None else record.engine):
            raise MalformedError(f"the kernel {kernel.name!r} is of another engine")
        if record is not None and (kernel.buffers, kernel.sizes) != (
            len(record.ranks),
            sum(record.ranks),
        ):
            raise MalformedError(f"the engine's kernel {kernel.name!r} takes other tensors")
    names = {f.name for f in program.functions}
    for function in () if manifest.native is None else manifest.native.functions:
        if function.name not in names:
            raise MalformedError(f"there is no function {function.name!r} for its native code")


def unknown_needs(manifest: Manifest) -> Sequence[str]:
    """What native code asks of the runtime that this one has not."""
    asked = () if manifest.native is None else manifest.native.api
    return sorted(set(asked) - set(API))


def _check_count(what: str, expected: int, found: int) -> None:
    if expected != found:
        raise MalformedError(f"the program has {expected} {what}, the file {found}")


def _check_constant(info: ConstantInfo, data: memoryview) -> None:
    needed = math.prod(info.shape) * dtype(info.dtype).numpy.itemsize
    if data.nbytes != needed:
        raise MalformedError(
            f"the constant {info.name!r} of {info.dtype}{list(info.shape)} takes {needed} bytes, "
            f"there are {data.nbytes}"
        )


def _require_different(what: str, names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        raise MalformedError(f"two {what} have one name")
