"""An image to a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unity.errors import UnityError, UnsupportedError
from unity.ir.dtype import Array, dtype
from unity.runtime.bytecode.program_json import to_json
from unity.runtime.engines.engine_kernel import EngineCode
from unity.runtime.hosts import HostRecord, record_of
from unity.runtime.image import Image

from .authentic import checked_key
from .checksum import checksum
from .container import Piece, offsets, write
from .manifest import EngineRecord, Manifest, PieceRecord, to_metadata
from .naming import require_suffix

_KINDS = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8",
    "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip
"""How safetensors calls a dtype; of others it is shown the bytes."""


def write_image(
    image: Image,
    path: Path,
    signature: str,
    threads: int,
    version: str,
    key: bytes | None = None,
    *,
    durable: bool = True,
) -> None:
    """Write an artifact; what was there before is replaced when all is written.

    Args:
        image: The executable.
        path: The file.
        signature: The main function, in words.
        threads: How many threads it uses: that is what engines have compiled for.
        version: Unity's.
        key: What its authentication code is made with; None for none.
        durable: Whether it is on the disk when this returns, as `replacing` has it.

    Raises:
        UnsupportedError: It calls Python functions that have no name.
        UnityError: The path has a model's name, an engine can't save what it compiled, or the file
            can't be written.
    """
    require_suffix(path)
    key = None if key is None else checked_key(key)
    hosts = _hosts(image)
    engines = [(code, _saved(code, threads)) for code in image.engines]
    pieces = [
        _raw("program", to_json(image.program).encode()),
        _raw("explanation", image.explanation.encode()),
        *(_raw(f"object/{i}", data) for i, data in enumerate(image.objects)),
        _raw("pool", image.pool),
        _raw("native", image.native_object),
        *(_raw(f"library/{name}", p.serial_object()) for name, p in image.libraries.items()),
        *(_raw(f"engine/{code.name}", data) for code, data in engines),
        *(_constant(f"constant/{i}", data) for i, data in enumerate(image.constants)),
    ]
    records = tuple(
        PieceRecord(piece.name, place, piece.data.nbytes, checksum(piece.data))
        for piece, place in zip(pieces, offsets(pieces), strict=True)
    )
    manifest = Manifest(
        unity=version,
        signature=signature,
        target=image.target,
        options=tuple(image.options.items()),
        pieces=records,
        objects=len(image.objects),
        native=image.native,
        symbols=image.symbols,
        libraries=tuple(p.record() for p in image.libraries.values()),
        engines=tuple(
            EngineRecord(c.name, c.engine, c.inputs, c.dtypes, c.ranks, c.module)
            for c, _ in engines
        ),
        hosts=hosts,
    )
    write(path, to_metadata(manifest), pieces, key, durable=durable)


def _hosts(image: Image) -> tuple[HostRecord, ...]:
    found = [record_of(host) for host in image.hosts]
    gaps = [why for why in found if isinstance(why, str)]
    if gaps:
        raise UnsupportedError("the executable can't be saved", gaps)
    return tuple(record for record in found if isinstance(record, HostRecord))


def _saved(code: EngineCode, threads: int) -> bytes:
    try:
        return code.make(threads).save()
    except UnityError:
        raise
    except Exception as error:
        raise UnityError(
            f"the engine {code.engine} can't save {code.name}: {type(error).__name__}: {error}",
            hint="compile without it: resolve={'*': 'tir'}",
        ) from error


def _raw(name: str, data: bytes) -> Piece:
    return Piece(name, memoryview(data), "U8", (len(data),))


def _constant(name: str, data: Array) -> Piece:
    """The constant's elements in order; what safetensors has no name for is shown as bytes."""
    plain = np.ascontiguousarray(data)
    view = plain.reshape(-1).view(np.uint8).data
    kind = _KINDS.get(dtype(data.dtype).name)
    return Piece(name, view, kind or "U8", data.shape if kind else (view.nbytes,))
