"""What a target can do natively: the gate before every instruction that not all targets have.

LLVM ends the whole process on an intrinsic the target cannot select, and turns others into calls
of a C library that is not there, so every such choice asks here first.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass

from unity.machine.dot_units import DOT_FEATURES
from unity.machine.target import Target


@dataclass(frozen=True, slots=True)
class Abilities:
    """The answers for one target.

    Attributes:
        arch: The first part of the triple.
        rounding: Vector floor, ceil, trunc and round-to-even are instructions.
        half: Conversions between ``half`` and ``float`` are instructions.
        masks: Any vector instruction may leave lanes as they are (AVX-512).
        nan_minmax: ``llvm.minimum`` and ``maximum`` are single instructions.
        scale: ``llvm.ldexp`` on vectors is an instruction (``vscalefps``).
        tables: One instruction looks sixteen lanes up in a register (``vpermps``).
        wide_integers: Vectors of 64-bit integers are converted to doubles and back, and
            multiplied, by instructions (AVX-512 DQ).
        wide_registers: A general register holds 64 bits.
        fma: Multiply-add is an instruction.
        ties: Assembly can tell which register a multiply-add leaves its sum in: AVX2's, of which
            there are sixteen, where LLVM reads such assembly, which it does of its own machine's.
        dots: The features among `DOT_FEATURES` that it has.
        pool: The threads of `pool` work there; elsewhere parallel loops run serially.
    """

    arch: str
    rounding: bool
    half: bool
    masks: bool
    nan_minmax: bool
    scale: bool
    tables: bool
    wide_integers: bool
    wide_registers: bool
    fma: bool
    ties: bool
    dots: frozenset[str]
    pool: bool


def abilities(target: Target) -> Abilities:
    """The abilities of a target, from its triple and its features."""
    arch = target.triple.split("-")[0]
    x86 = arch in ("x86_64", "i386", "i686")
    arm = arch in ("aarch64", "arm64")
    linux = "linux" in target.triple
    native = platform.machine() in ("x86_64", "AMD64")
    return Abilities(
        arch=arch,
        rounding=arm or (x86 and target.has("sse4.1")) or arch.startswith("wasm"),
        half=arm or (x86 and target.has("f16c")),
        masks=target.masked,
        nan_minmax=arm,
        scale=target.masked,
        tables=x86 and target.has("avx512f"),
        wide_integers=x86 and target.has("avx512dq") and target.has("avx512vl"),
        wide_registers=arm or arch == "x86_64",
        fma=target.fused,
        ties=x86 and target.fused and not target.masked and native,
        dots=frozenset(f for f in DOT_FEATURES if x86 and target.has(f)),
        pool=linux and arch in ("x86_64", "aarch64"),
    )
