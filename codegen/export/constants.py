"""The constants as an object file: the assembler takes them from a file, no text is made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unity.codegen.llvm.machine import compile_text
from unity.ir.aligned import places
from unity.ir.dtype import Array
from unity.ir.target import Target


def constant_places(constants: Sequence[Array]) -> list[int]:
    """Where each constant begins in the data."""
    return places(constant.nbytes for constant in constants)


def constants_object(constants: Sequence[Array], target: Target, folder: Path) -> bytes:
    """An object file with the symbol ``unity_c_data``.

    Args:
        constants: The data.
        target: An ELF system.
        folder: For a temporary file of their size.
    """
    path = folder / "constants.bin"
    with open(path, "wb") as file:
        end = 0
        for constant, place in zip(constants, constant_places(constants), strict=True):
            file.write(bytes(place - end))
            file.write(np.ascontiguousarray(constant).reshape(-1).view(np.uint8).data)
            end = place + constant.nbytes
        file.write(b"\0")
    quoted = str(path).replace("\\", "\\5C").replace('"', "\\22")
    lines = [
        '.section .rodata.unity,\\22a\\22,@progbits', ".p2align 12", ".globl unity_c_data",
        ".hidden unity_c_data", "unity_c_data:", f".incbin \\22{quoted}\\22", ".text",
    ]  # fmt: skip
    return compile_text("\n".join(f'module asm "{line}"' for line in lines), target, "short").object
