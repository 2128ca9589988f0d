"""`unity doctor`: what this machine has, and whether Unity works on it."""

from __future__ import annotations

import platform
from importlib import metadata

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from unity.codegen.llvm import default_folder
from unity.codegen.llvm.host import host_target
from unity.errors import UnityError
from unity.machine.dot_units import DOT_UNITS
from unity.machine.target import Target
from unity.transform.backend import backend_of, offers, package_of

from .cache import summary

NEEDED = ("numpy", "llvmlite", "onnx", "sympy", "ml_dtypes", "safetensors", "typer", "rich")
OPTIONAL = ("onnxruntime", "torch", "scikit-learn")
SHOWN = ("avx2", "fma", "avx512f", "avx512bf16", "avx512fp16", "avx512vnni", "amx-bf16", "amx-int8")


def examine() -> None:
    """Print the report; compiles and runs one kernel as a test."""
    console = Console(highlight=False)
    table = Table("what", "found", show_header=False)
    table.add_row("python", f"{platform.python_version()} on {platform.platform()}")
    for name in (*NEEDED, *OPTIONAL):
        try:
            table.add_row(name, metadata.version(name))
        except metadata.PackageNotFoundError:
            table.add_row(name, "[red]missing" if name in NEEDED else "not installed (optional)")
    target = host_target()
    table.add_row("target", f"{target.cpu}, {target.triple}, {target.threads} threads")
    table.add_row("vectors", f"{target.vector_bits} bits, {target.vector_registers} registers")
    table.add_row("features", ", ".join(f for f in SHOWN if target.has(f)) or "none of note")
    caches = (target.l1_bytes, target.l2_bytes, target.l3_bytes)
    table.add_row("caches", ", ".join(f"L{i} {c >> 10} KiB" for i, c in enumerate(caches, 1)))
    table.add_row("costs", _costs(target))
    dots = ", ".join(u.name for u in DOT_UNITS if u.on(target))
    table.add_row("dot products", dots or "none as instructions")
    for name, entries in offers().items():
        table.add_row(f"target {name!r}", _backend(name, ", ".join(map(package_of, entries))))
    table.add_row("a kernel", _try_kernel())
    table.add_row("cache", _cache())
    console.print(table)


def _costs(target: Target) -> str:
    """What choices are made by, as the target's machine says."""
    machine = target.machine
    return (
        f"{machine.fma_per_cycle:g} multiply-adds of registers a cycle, {machine.fma_latency:g} "
        f"cycles each; {machine.memory_bytes_per_cycle:g} bytes a cycle from memory; waking "
        f"threads {machine.wake_cycles} cycles, worth it from {machine.grain_cycles:g} on"
    )


def _backend(name: str, packages: str) -> str:
    try:
        backend_of(name)
    except UnityError as error:
        return f"[red]{escape(str(error))}"
    return f"of {packages}"


def _cache() -> str:
    folder = default_folder()
    return "off (UNITY_CACHE_DIR)" if folder is None else summary(folder)


def _try_kernel() -> str:
    import numpy as np

    from unity.compiler import compile as unity_compile
    from unity.script import parse

    module = parse(
        'n = dim("n")\n'
        "@script.function\n"
        "def main(x: f32[Tensor, n]) -> f32[Tensor, n]:\n"
        "    return R.exp(x)\n"
    )
    x = np.linspace(-2, 2, 1000, dtype=np.float32)
    fits = np.allclose(unity_compile(module)(x), np.exp(x), rtol=1e-5)
    return "[green]compiles, runs and is right" if fits else "[red]gives a wrong answer"
