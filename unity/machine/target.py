"""Targets: where code runs, as data. Detection of the host is in `unity.codegen.llvm.host`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from unity.arguments import public, public_class
from unity.errors import UnityError

from .machine import MACHINE, Machine
from .scope import MemoryScope

VECTOR_BITS = (64, 128, 256, 512, 1024, 2048)
"""Widths of vector registers that there are; the widest are Arm's SVE."""


@public_class
@dataclass(frozen=True, slots=True)
class Target:
    """A machine to generate code for.

    Attributes:
        kind: The name of its backend, whose pipeline and rules it takes.
        triple: LLVM's target triple.
        cpu: LLVM's cpu name, chosen from the features.
        features: LLVM's feature names that are on, sorted.
        vector_bits: Width of a vector register.
        vector_registers: How many of them.
        l1_bytes: Data cache of a core, first level.
        l2_bytes: Second level.
        l3_bytes: Last level, shared.
        threads: How many threads a parallel loop may use.
        machine: What things take there.
        scopes: Memories of its own that kernels may place buffers in.
    """

    kind: str
    triple: str
    cpu: str
    features: tuple[str, ...]
    vector_bits: int = 128
    vector_registers: int = 16
    l1_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    l3_bytes: int = 8 << 20
    threads: int = 1
    machine: Machine = MACHINE
    scopes: tuple[MemoryScope, ...] = ()

    def __post_init__(self) -> None:
        """Refuse numbers that no machine has.

        Raises:
            UnityError: There is such.
        """
        if self.vector_bits not in VECTOR_BITS:
            raise UnityError(
                f"Target: vector_bits={self.vector_bits}",
                hint=f"one of {', '.join(map(str, VECTOR_BITS))}",
            )
        for name in ("vector_registers", "l1_bytes", "l2_bytes", "l3_bytes", "threads"):
            number: int = getattr(self, name)
            if number < 1:
                raise UnityError(f"Target: {name}={number}", hint="at least 1")

    @partial(public, late=True)  # asked at every step of a rule
    def has(self, feature: str) -> bool:
        """Whether a feature is on."""
        return feature in self.features

    @property
    def fused(self) -> bool:
        """Whether a multiply-add is an instruction; taken for granted where no machine is told."""
        arch = self.triple.partition("-")[0]
        if arch in ("x86_64", "i386", "i686"):
            return self.has("fma")
        return arch in ("", "aarch64", "arm64") or arch.startswith("riscv")

    @property
    def many_registers(self) -> bool:
        """Whether there are 32 registers, as of AVX-512 and aarch64, not the 16 of SSE and AVX2."""
        return self.vector_registers >= 32

    @property
    def masked(self) -> bool:
        """Whether any vector instruction may leave lanes as they are, by registers of masks."""
        x86 = self.triple.partition("-")[0] in ("x86_64", "i386", "i686")
        return x86 and self.has("avx512f") and self.has("avx512vl")

    @property
    def l1_kept(self) -> int:
        """Bytes that stay in the first cache while as many pass through it."""
        return int(self.l1_bytes * self.machine.kept_share)

    @property
    def l2_kept(self) -> int:
        """The same of the second."""
        return int(self.l2_bytes * self.machine.kept_share)

    @property
    def l2_reread(self) -> int:
        """Bytes that are still in the second cache when all of them are read once more."""
        return int(self.l2_bytes * self.machine.l2_reread_share)

    @property
    def tasks(self) -> int:
        """Tasks that let all its threads end at about the same time."""
        return self.machine.tasks_per_thread * self.threads

    @partial(public, late=True)
    def shares_evenly(self, tasks: int) -> bool:
        """Whether threads that take whole tasks end at about the same time."""
        return tasks >= self.tasks or tasks % self.threads == 0
