"""The constants as an object file, written piece by piece: memory holds no copy of them.

An assembler would hold several. An ELF object for the linker is little more than its data: a
section of it, a symbol where that begins, and names.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from unity.ir.arrays.aligned import places
from unity.ir.dtype import Array

PAGE = 4096
SYMBOL = "unity_c_data"
_RELOCATABLE = 1
_PROGBITS, _SYMTAB, _STRTAB = 1, 2, 3
_ALLOCATED = 2
_GLOBAL_OBJECT, _HIDDEN = 0x11, 2


def constant_places(constants: Sequence[Array]) -> list[int]:
    """Where each constant begins in the data."""
    return places(constant.nbytes for constant in constants)


def write_constants(constants: Sequence[Array], like: bytes, path: Path) -> None:
    """Write an object file with the hidden symbol ``unity_c_data``, which begins on a page.

    Args:
        constants: The data.
        like: An object for the same 64-bit ELF system, which says what processor that is.
        path: The file.
    """
    assert like[:5] == b"\x7fELF\x02", like[:5]
    order = "<" if like[5] == 1 else ">"
    kind, machine, version = struct.unpack_from(f"{order}HHI", like, 16)
    assert kind == _RELOCATABLE, kind
    (flags,) = struct.unpack_from(f"{order}I", like, 48)
    with open(path, "wb") as file:
        size = _write_data(file, constants)
        symbol = struct.pack(f"{order}IBBHQQ", 1, _GLOBAL_OBJECT, _HIDDEN, 1, 0, size)
        symbols = bytes(len(symbol)) + symbol  # the first means none
        sections = [
            _Section(".rodata.unity", _PROGBITS, PAGE, size, flags=_ALLOCATED, align=PAGE),
            _Section(".note.GNU-stack", _PROGBITS, PAGE + size, 0),  # that no code is on it
            _Section(".symtab", _SYMTAB, file.tell(), file.write(symbols), 0, 4, 1, 8, len(symbol)),
            _Section(".strtab", _STRTAB, file.tell(), file.write(f"\0{SYMBOL}\0".encode())),
        ]
        names = "\0".join(["", *(s.name for s in sections), ".shstrtab", ""]).encode()
        sections.append(_Section(".shstrtab", _STRTAB, file.tell(), file.write(names)))
        file.write(bytes(-file.tell() % 8))
        table = file.tell()
        entries = [bytes(64), *(s.entry(order, names) for s in sections)]
        file.write(b"".join(entries))
        file.seek(0)
        file.write(like[:16])
        last = len(entries) - 1
        file.write(
            struct.pack(
                f"{order}HHIQQQIHHHHHH",
                *(kind, machine, version, 0, 0, table, flags, 64, 0, 0, 64, len(entries), last),
            )
        )


def _write_data(file: BinaryIO, constants: Sequence[Array]) -> int:
    """Write the data behind room for the header; how many bytes it takes."""
    file.write(bytes(PAGE))
    end = 0
    for constant, place in zip(constants, constant_places(constants), strict=True):
        file.write(bytes(place - end))
        file.write(np.ascontiguousarray(constant).reshape(-1).view(np.uint8).data)
        end = place + constant.nbytes
    return end + file.write(bytes(8 + -end % 8))  # a constant of no bytes lies somewhere, too


@dataclass(frozen=True, slots=True)
class _Section:
    """What an ELF file says of a section: where it is, and what is to be made of it."""

    name: str
    kind: int
    place: int
    size: int
    flags: int = 0
    link: int = 0
    info: int = 0
    align: int = 1
    each: int = 0

    def entry(self, order: str, names: bytes) -> bytes:
        """Its entry in the table of sections, given all names."""
        name = names.index(f"\0{self.name}\0".encode()) + 1
        return struct.pack(
            f"{order}IIQQQQIIQQ",
            *(name, self.kind, self.flags, 0, self.place, self.size),
            *(self.link, self.info, self.align, self.each),
        )
