"""The numbers of a machine that choices are made by: what its cores, caches and threads take.

Estimates only: they decide which code is made, never what it computes. Where nothing else is said
beside a default, it was chosen on two cores of a Xeon with AVX-512 and AMX (Sapphire Rapids, about
2.6 GHz), where most of the rules were written, and is used everywhere. A backend that knows better
gives its targets others: ``Target(..., machine=Machine(wake_cycles=9000))``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, assert_never

from unity.errors import UnityError

Work: TypeAlias = Literal[
    "multiply_adds", "elements", "statements", "operations",
    "tile_multiply_adds", "tile_convolutions", "library_multiply_adds",
]  # fmt: skip
"""In what work is counted: see the rates of `Machine`."""


@dataclass(frozen=True, slots=True, repr=False)
class Machine:
    """What things take. A cycle is one of a core's clock.

    Attributes:
        wake_cycles: From a kernel's fork to the last thread's end, beside the work: some 1 us of
            the pool of `unity.codegen.llvm.pool`.
        tasks_per_thread: Tasks for each thread that let all end at about the same time.
        multiply_adds_per_cycle: Of float32 that a thread does in a product as small as a grain; its
            peak is two registers full. This rate and those below come from thresholds, each chosen
            by the kernels of one rule on the machine below.
        elements_per_cycle: The same of elements made by a simple formula: loaded, computed, stored.
        statements_per_cycle: The same of scalar stores, as of loops that nothing is known about.
        operations_per_cycle: The same of instructions, as `unity.codegen.llvm.cost` counts them.
        tile_multiply_adds_per_cycle: Of narrow numbers in a matrix product on AMX, whose tasks
            configure tiles and may copy rows first.
        tile_convolutions_per_cycle: The same in a convolution, whose tasks share nothing but
            weights; five times the products' rate for no reason that was measured, and kept until
            somebody does on a machine with AMX.
        library_multiply_adds_per_cycle: The same of a library's function, which packs its operands
            again for every task.
    """

    wake_cycles: int = 3000
    tasks_per_thread: int = 4
    multiply_adds_per_cycle: float = 16.0
    elements_per_cycle: float = 16 / 3
    statements_per_cycle: float = 8 / 3
    operations_per_cycle: float = 64 / 15
    tile_multiply_adds_per_cycle: float = 320 / 3
    tile_convolutions_per_cycle: float = 2**21 / 3750
    library_multiply_adds_per_cycle: float = 2**21 / 3750

    def __post_init__(self) -> None:
        """Refuse numbers that no machine has.

        Raises:
            UnityError: There is such.
        """
        for f in fields(self):
            number: float = getattr(self, f.name)
            if not (number > 0 or (number == 0 and f.name.endswith("_cycles"))):
                raise UnityError(f"Machine: {f.name}={number}", hint="more than 0")

    def __repr__(self) -> str:
        """What differs from the defaults."""
        own = ((f.name, getattr(self, f.name)) for f in fields(self))
        other = (f"{name}={value!r}" for name, value in own if value != getattr(MACHINE, name))
        return f"Machine({', '.join(other)})"

    @property
    def grain_cycles(self) -> float:
        """Work below which no thread is woken: somewhat more than waking it costs."""
        return 1.25 * self.wake_cycles

    def grain(self, work: Work) -> int:
        """The grain in units of work.

        >>> Machine().grain("multiply_adds"), Machine().grain("elements")
        (60000, 20000)
        >>> Machine(wake_cycles=6000).grain("multiply_adds")
        120000
        """
        return max(1, round(self.grain_cycles * self.rate(work)))

    def rate(self, work: Work) -> float:
        """Units of work that a thread does in a cycle."""
        match work:
            case "multiply_adds":
                return self.multiply_adds_per_cycle
            case "elements":
                return self.elements_per_cycle
            case "statements":
                return self.statements_per_cycle
            case "operations":
                return self.operations_per_cycle
            case "tile_multiply_adds":
                return self.tile_multiply_adds_per_cycle
            case "tile_convolutions":
                return self.tile_convolutions_per_cycle
            case "library_multiply_adds":
                return self.library_multiply_adds_per_cycle
            case _:
                assert_never(work)


MACHINE = Machine()
"""The numbers of a target of which nothing else is known."""
