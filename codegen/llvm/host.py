"""This machine as a target: its features, a cpu name that fits them, caches and threads."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import llvmlite.binding as llvm

from unity.machine.target import Target
from unity.runtime.host import available_cpus, host_features, host_triple

_CPU_BY_FEATURES: tuple[tuple[tuple[str, ...], str], ...] = (
    # The name chooses LLVM's scheduling model only (features are passed on their own), and
    # LLVM's own guess is wrong on machines newer than itself. First match wins.
    (("amx-fp16",), "graniterapids"),
    (("amx-bf16",), "sapphirerapids"),
    (("sse4a", "avx512bf16"), "znver4"),
    (("avx512vnni", "avx512vbmi2", "sha"), "icelake-server"),
)


def host_target(threads: int | None = None) -> Target:
    """The machine this process runs on.

    Args:
        threads: How many threads a parallel loop may use; None for as many as there are cpus
            that this process may run on.
    """
    found = _host()
    if threads is None:
        threads = available_cpus()
    return Target(
        kind="cpu",
        triple=found.triple,
        cpu=found.cpu,
        features=found.features,
        vector_bits=found.vector_bits,
        vector_registers=found.vector_registers,
        l1_bytes=found.l1_bytes,
        l2_bytes=found.l2_bytes,
        l3_bytes=found.l3_bytes,
        threads=threads,
    )


@lru_cache(maxsize=1)
def _host() -> Target:
    features = tuple(sorted(k for k, on in host_features().items() if on))
    triple = host_triple()
    bits, registers = vector_shape(triple, features)
    l1, l2, l3 = _caches()
    return Target(
        kind="cpu",
        triple=triple,
        cpu=_cpu(features),
        features=features,
        vector_bits=bits,
        vector_registers=registers,
        l1_bytes=l1,
        l2_bytes=l2,
        l3_bytes=l3,
    )


def vector_shape(triple: str, features: tuple[str, ...]) -> tuple[int, int]:
    """Width in bits and number of the vector registers."""
    if triple.startswith(("aarch64", "arm64")):
        return 128, 32
    if "avx512f" in features:
        return 512, 32
    if "avx" in features:
        return 256, 16
    return 128, 16


def _cpu(features: tuple[str, ...]) -> str:
    for needed, name in _CPU_BY_FEATURES:
        if all(f in features for f in needed):
            return name
    return llvm.get_host_cpu_name()


def _caches(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> tuple[int, int, int]:
    """Data cache sizes by level, from the kernel; usual sizes where it does not say."""
    sizes = {1: 32 << 10, 2: 1 << 20, 3: 8 << 20}
    for entry in sorted(root.glob("index*")):
        try:
            if (entry / "type").read_text().strip() == "Instruction":
                continue
            level = int((entry / "level").read_text())
            sizes[level] = _size((entry / "size").read_text().strip())
        except (OSError, ValueError):
            continue
    return sizes[1], sizes[2], sizes[3]


def _size(text: str) -> int:
    units = {"K": 10, "M": 20, "G": 30}
    return int(text[:-1]) << units[text[-1]] if text[-1] in units else int(text)
