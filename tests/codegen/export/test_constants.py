"""The object file of constants: each at its place, for the processor that another object is for."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from unity.codegen.export.constants import PAGE, constant_places, write_constants
from unity.codegen.llvm.machine import compile_text
from unity.ir.dtype import Array
from unity.machine.target import Target

MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243}


def empty_object(arch: str) -> bytes:
    target = Target("cpu", f"{arch}-unknown-linux-gnu", "generic", (), 128, 16)
    return compile_text("", target, "short").object


@pytest.mark.parametrize("arch", MACHINES)
def test_it_is_an_object_for_the_same_machine(arch: str, tmp_path: Path) -> None:
    like = empty_object(arch)
    path = tmp_path / "constants.o"
    write_constants([np.arange(3, dtype=np.int16)], like, path)
    made = path.read_bytes()
    assert made[:20] == like[:20]
    assert struct.unpack_from("<H", made, 18) == (MACHINES[arch],)
    assert made[48:52] == like[48:52]  # what the ABI asks for
    table, entry, count, names = struct.unpack_from("<Q10xHHH", made, 40)
    assert (entry, len(made)) == (64, table + 64 * count)
    assert names == count - 1


def test_each_constant_lies_at_its_place(tmp_path: Path) -> None:
    constants: list[Array] = [
        np.arange(5, dtype=np.float32),
        np.zeros((0, 3)),
        np.asarray(7, np.int64),
        np.arange(6, dtype=np.float32).reshape(2, 3).T,
    ]
    path = tmp_path / "constants.o"
    write_constants(constants, empty_object("x86_64"), path)
    made = path.read_bytes()
    for constant, place in zip(constants, constant_places(constants), strict=True):
        found = np.frombuffer(made, constant.dtype, constant.size, PAGE + place)
        np.testing.assert_array_equal(found.reshape(constant.shape), constant)


def test_no_constants_make_an_object_too(tmp_path: Path) -> None:
    write_constants([], empty_object("x86_64"), tmp_path / "constants.o")
    assert (tmp_path / "constants.o").stat().st_size > PAGE
