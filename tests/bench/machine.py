"""What machine a row was measured on: no ratio without its cpu."""

from __future__ import annotations

from unity.codegen.llvm import host_target

NOTABLE = ("amx-bf16", "avx512bf16", "avx512vnni", "avx512f", "avx2")
"""What decides which kernels run, best first."""


def machine() -> str:
    """The cpu as LLVM names it, the best of its vector units, and how many of them."""
    here = host_target()
    best = next((f for f in NOTABLE if here.has(f)), f"{here.vector_bits} bits")
    return f"{here.cpu} ({best}), {here.threads} cpus"
