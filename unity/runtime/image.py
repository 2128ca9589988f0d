"""An executable before it is linked: what compiling gives, what an artifact holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from unity.ir.dtype import Array
from unity.machine.target import Target
from unity.runtime.bytecode import Program
from unity.runtime.engines.engine_kernel import EngineCode
from unity.runtime.linking.foreign import Provider
from unity.runtime.native_info import NativeInfo
from unity.runtime.vm import Host

Option: TypeAlias = str | int | bool | None


@dataclass(frozen=True, slots=True)
class Image:
    """A program with its code and data.

    Attributes:
        program: The bytecode.
        target: What the code is for.
        objects: Object files of the kernels.
        pool: The object file of the thread pool.
        constants: The constants' data, never written to.
        hosts: The Python functions that the program calls.
        native: What `native_object` holds; None if all runs as bytecode.
        native_object: The object file of the native functions.
        symbols: The foreign functions that kernels call, ``library.function``.
        libraries: Who has them, by library.
        engines: The kernels that engines compute.
        explanation: What call sites were resolved to, as JSON; empty if nothing is known.
        options: What was asked for when it was compiled.
    """

    program: Program
    target: Target
    objects: Sequence[bytes]
    pool: bytes
    constants: Sequence[Array] = ()
    hosts: Sequence[Host] = ()
    native: NativeInfo | None = None
    native_object: bytes = b""
    symbols: tuple[str, ...] = ()
    libraries: Mapping[str, Provider] = field(default_factory=dict)
    engines: tuple[EngineCode, ...] = ()
    explanation: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)
