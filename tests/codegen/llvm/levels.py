"""Machines that default schedules are checked for: x86 levels, and aarch64 to object code."""

from __future__ import annotations

from dataclasses import replace

from unity.codegen.llvm import host_target
from unity.codegen.llvm.abilities import Abilities, abilities
from unity.machine.target import Target

LINUX = "x86_64-unknown-linux-gnu"
SSE = ("cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3")
AVX2 = (*SSE, "avx", "avx2", "bmi", "bmi2", "f16c", "fma")
AVX512 = (*AVX2, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
DOTS = (*AVX512, "avx512bf16", "avx512vnni")
AMX = (*DOTS, "amx-bf16", "amx-int8", "amx-tile")
LEVELS = {
    "amx": Target("cpu", LINUX, "sapphirerapids", AMX, 512, 32, threads=2),
    "avx512 with dots": Target("cpu", LINUX, "cooperlake", DOTS, 512, 32, threads=2),
    "avx512": Target("cpu", LINUX, "skylake-avx512", AVX512, 512, 32, threads=2),
    "avx2": Target("cpu", LINUX, "haswell", AVX2, 256, 16, threads=2),
    "sse4.2": Target("cpu", LINUX, "nehalem", SSE, 128, 16, threads=2),
    "x86-64": Target("cpu", LINUX, "x86-64", (), 128, 16, threads=2),
}
ARM = {
    "neon": Target("cpu", "aarch64-unknown-linux-gnu", "cortex-a72", ("neon",), 128, 32, threads=2),
    "aarch64": Target("cpu", "aarch64-unknown-linux-gnu", "generic", ("neon",), 128, 32),
    "apple": Target("cpu", "arm64-apple-macosx14", "apple-m1", ("neon", "fullfp16"), 128, 32),
}
"""None of them with SVE: vectors of known length are all that is written."""


def runs_here(target: Target) -> bool:
    """Whether this machine has what a target needs."""
    here = host_target()
    return here.triple.startswith("x86_64") and set(target.features) <= set(here.features)


def emitted_here(bits: int, registers: int) -> Target:
    """Registers of a width and so many, with the instructions of this machine.

    LLVM makes several of one that is wider, so that schedules for others compute here.
    """
    return replace(host_target(threads=2), vector_bits=bits, vector_registers=registers)


def with_masks(target: Target) -> Abilities:
    """A machine's, but it has registers of masks: LLVM does without where there are none."""
    return replace(abilities(target), masks=True, scale=target.has("avx512vl"), ties=False)


def small_caches(target: Target) -> Target:
    """The target with caches that small shapes overflow."""
    return replace(target, l1_bytes=1 << 12, l2_bytes=1 << 14)
