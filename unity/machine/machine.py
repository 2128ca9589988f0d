"""The numbers of a machine that choices are made by: what its cores, caches and threads take.

Estimates only: they decide which code is made, never what it computes. Where nothing else is said
beside a default, it was chosen on two cores of a Xeon with AVX-512 and AMX (Sapphire Rapids, about
2.6 GHz), where most of the rules were written, and is used everywhere. A backend that knows better
gives its targets others: ``Target(..., machine=Machine(wake_cycles=9000))``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, assert_never

from unity.arguments import public_class
from unity.errors import UnityError
from unity.ir.arrays.aligned import LINE

Work: TypeAlias = Literal[
    "multiply_adds", "elements", "statements", "operations",
    "tile_multiply_adds", "tile_convolutions", "library_multiply_adds",
]  # fmt: skip
"""In what work is counted: see the rates of `Machine`."""


@public_class
@dataclass(frozen=True, slots=True, repr=False)
class Machine:
    """What things take. A cycle is one of a core's clock.

    Attributes:
        hertz: Cycles per second, where seconds are asked for.
        fma_per_cycle: Multiply-adds of vector registers that begin in a cycle (two on Intel's and
            AMD's big cores and on Arm's Neoverse: Agner Fog's tables, Arm's optimization guides).
        fma_latency: Cycles until one's sum is there (the same tables: 4 since Skylake and on Zen).
        loads_per_cycle: Loads of vector registers that are sustained in a cycle: 2 by the tables,
            but a step of 14 multiply-adds and 15 loads takes 1.3 times one of 12 and 8 for each of
            them (Winograd's products of 512 channels, AMD Zen 3, threads sharing its cores).
        loop_cycles: What a step of a register tile takes besides.
        taps_cycles: The same of a step whose taps along a line share what they load.
        l2_vector_cycles: A register of columns from the second cache that was fetched ahead: some
            48 bytes a cycle with AVX-512.
        stall_cycles: What a step takes longer whose columns were not, and for each line of them
            (measured there on products with their columns in panels, registers as long as lines).
        l2_bytes_per_cycle: What comes from the second cache to be multiplied at once.
        memory_bytes_per_cycle: The same from behind it; 20 GB/s.
        stream_bytes_per_cycle: What comes from there where nothing but reads in order goes on
            (Winograd's weights of 256 channels for images of 7 to 20 pixels).
        far_bytes_per_cycle: The same from behind the last cache: 12 GB/s (Winograd's weights of 512
            channels, 38 MB, in ResNet-18 on AMD Zen 3, whose last cache has 32).
        relayout_bytes_per_cycle: What is read and written where an image changes layout; 8 GB/s.
        cached_relayout_bytes_per_cycle: The same of one that the second cache about holds: 0.3 to
            2.3 MB brought into blocks of channels and back (AMD Zen 4).
        padded_line_cycles: To copy a line of an image into one with padding before it is seen by
            windows, of known and of unknown length, with what masks of its sums take then
            (depthwise 5x5 convolutions of 672 channels of 14 x 14, AMD Zen 4).
        page_bytes: A page of memory, and a way of the first cache: lines that lie a multiple of
            it apart share a set (4 KB on x86-64 and on most aarch64).
        ahead_bytes: What lies between what is read and what is asked for ahead of it (softmax of
            1024 x 1024 there takes 380 us without and 300 with; 4 to 16 KB are alike).
        kept_share: Of a cache, what stays there while as much again passes through it.
        l1_reread_share: Of the first cache, what is still there when it is read once more.
        l2_reread_share: The same of the second, which holds code and tables of pages besides.
        l3_counted_bytes: Of the last cache, what a program can count on: large ones are shared by
            many cores.
        tile_end_cycles: Until the last sums of a register tile are there.
        product_share: Of the multiply-adds that could begin, those that do in the product of a
            convolution; measured there with AVX-512.
        winograd_share: The same where Winograd's tiles are multiplied.
        winograd_cycles: For each value of such a tile, to transform it before the products or
            behind them.
        exposed_share: Of the time that memory takes, what is not hidden behind multiplications.
        start_cycles: What a kernel takes besides its work, by one thread.
        wake_cycles: From a kernel's fork to the last thread's end, beside the work: some 1 us of
            the pool of `unity.codegen.llvm.pool`.
        tasks_per_thread: Tasks for each thread that let all end at about the same time.
        multiply_adds_per_cycle: Of float32 that a thread does in a product as small as a grain; its
            peak is two registers full. This rate and those below come from thresholds, each chosen
            by the kernels of one rule on the machine below.
        elements_per_cycle: The same of elements made by a simple formula: loaded, computed, stored.
        statements_per_cycle: The same of scalar stores, as of loops that nothing is known about.
        operations_per_cycle: The same of instructions, by `unity.codegen.llvm.facts.cost`.
        tile_multiply_adds_per_cycle: Of narrow numbers in a matrix product on AMX, whose tasks
            configure tiles and may copy rows first.
        tile_convolutions_per_cycle: The same in a convolution, whose tasks share nothing but
            weights; five times the products' rate for no reason that was measured, and kept until
            somebody does on a machine with AMX.
        library_multiply_adds_per_cycle: The same of a library's function, which packs its operands
            again for every task.
    """

    hertz: float = 2.6e9
    fma_per_cycle: float = 2.0
    fma_latency: float = 4.0
    loads_per_cycle: float = 1.5
    loop_cycles: float = 0.5
    taps_cycles: float = 2.0
    l2_vector_cycles: float = 4 / 3
    stall_cycles: tuple[float, float] = (0.5, 0.35)
    l2_bytes_per_cycle: float = 24.0
    memory_bytes_per_cycle: float = 8.0
    stream_bytes_per_cycle: float = 7.5
    far_bytes_per_cycle: float = 4.5
    relayout_bytes_per_cycle: float = 3.0
    cached_relayout_bytes_per_cycle: float = 7.5
    padded_line_cycles: tuple[float, float] = (5.0, 22.0)
    page_bytes: int = 4096
    ahead_bytes: int = 8 << 10
    kept_share: float = 0.5
    l1_reread_share: float = 0.8
    l2_reread_share: float = 0.75
    l3_counted_bytes: int = 32 << 20
    tile_end_cycles: float = 30.0
    product_share: float = 0.75
    winograd_share: float = 0.66
    winograd_cycles: float = 6.5
    exposed_share: float = 0.5
    start_cycles: int = 600
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
            given: float | tuple[float, ...] = getattr(self, f.name)
            least = 0 if f.name.endswith("_cycles") else 1e-9
            numbers = given if isinstance(given, tuple) else (given,)
            if len(numbers) != (2 if isinstance(f.default, tuple) else 1):
                raise UnityError(f"Machine: {f.name}={given}", hint=f"as {f.default}")
            for number in numbers:
                if not least <= number < float("inf"):
                    raise UnityError(f"Machine: {f.name}={number}", hint="a number above 0")

    def __repr__(self) -> str:
        """What differs from the defaults."""
        own = ((f.name, getattr(self, f.name)) for f in fields(self))
        other = (f"{name}={value!r}" for name, value in own if value != getattr(MACHINE, name))
        return f"Machine({', '.join(other)})"

    @property
    def grain_cycles(self) -> float:
        """Work below which no thread is woken: somewhat more than waking it costs."""
        return 1.25 * self.wake_cycles

    def kernel_cycles(self, threads: int) -> int:
        """What a kernel takes besides its work, by so many threads."""
        return self.start_cycles if threads == 1 else self.wake_cycles

    @property
    def fma_in_flight(self) -> int:
        """Sums that keep the multipliers busy."""
        return round(self.fma_per_cycle * self.fma_latency)

    def step_cycles(
        self, multiplies: int, loads: int, *, chain: int = 1, from_l2: int = 0, spilled: int = 0
    ) -> float:
        """Cycles of a register tile's step: what takes longest of all that goes on at once.

        Args:
            multiplies: Multiply-adds of registers.
            loads: Registers that are loaded, or broadcast.
            chain: Multiply-adds that wait for each other.
            from_l2: Of the loads, those from the second cache, fetched ahead.
            spilled: Sums that there are no registers for: each is loaded and stored.

        >>> Machine().step_cycles(6 * 2, 6 + 2), Machine().step_cycles(2, 3)
        (6.5, 4.5)
        """
        busy = (
            multiplies / self.fma_per_cycle,
            (loads + 2 * spilled) / self.loads_per_cycle,
            chain * self.fma_latency,
            from_l2 * self.l2_vector_cycles,
        )
        return max(busy) + self.loop_cycles

    def stalled_cycles(self, columns: int) -> float:
        """What a step takes longer whose columns come from the second cache, not fetched ahead.

        Args:
            columns: How many bytes of them a step reads.

        >>> Machine().stalled_cycles(4 * 64), Machine().stalled_cycles(2 * 32)
        (1.9, 0.85)
        """
        first, each = self.stall_cycles
        return first + each * columns / LINE

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
