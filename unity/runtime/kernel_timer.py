"""What kernels take by themselves: their machine code is called again and again, on copies.

A call by way of ctypes takes longer than a small kernel. It is timed with a function that does
nothing and subtracted. Kernels may write over what they read, so the repeated calls get copies.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from unity.ir.arrays.aligned import aligned_empty
from unity.ir.dtype import Array
from unity.runtime.bytecode import KernelInfo
from unity.runtime.vm import Kernel

_SECONDS = 2e-4
"""How long a kernel is called again, at least three times."""
_ROUNDS = 5
_ENOUGH = 3
"""How often a kernel is timed at the same sizes; in a long loop the last time then counts."""


@dataclass(frozen=True, slots=True)
class NativeKernel:
    """A kernel at an address as a callable on arrays and sizes."""

    address: int
    info: KernelInfo
    _call: Callable[..., int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the function that ctypes calls."""
        object.__setattr__(self, "_call", self.typed(self.address))

    def typed(self, address: int) -> Callable[..., int]:
        """A function of the kernel's signature."""
        types = [ctypes.c_void_p] * self.info.buffers + [ctypes.c_int64] * self.info.sizes
        return ctypes.CFUNCTYPE(ctypes.c_int32, *types)(address)

    def __call__(self, arrays: Sequence[Array], sizes: Sequence[int]) -> int:
        """Run it."""
        return int(self._call(*(a.ctypes.data for a in arrays), *sizes))

    def timed(self, arrays: Sequence[Array], sizes: Sequence[int]) -> tuple[int, float]:
        """Run it: what it returned, and seconds, without what it takes to get at the arrays."""
        args = [*(a.ctypes.data for a in arrays), *sizes]
        begin = time.perf_counter()
        code = int(self._call(*args))
        return code, time.perf_counter() - begin

    def seconds(self, arrays: Sequence[Array], sizes: Sequence[int]) -> float:
        """What a call takes, without what it takes to call."""
        copies = _copied(arrays)
        args = [*(copies[a.ctypes.data, a.nbytes].ctypes.data for a in arrays), *sizes]
        idle = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value
        assert idle is not None
        nothing = self.typed(idle)
        once = _timed(self._call, args, 1)
        count = max(3, min(1000, int(_SECONDS / max(once, 1e-7))))
        rounds = _ROUNDS if once < _SECONDS else 1
        taken = min(_timed(self._call, args, count) for _ in range(rounds))
        return max(taken - min(_timed(nothing, args, count) for _ in range(rounds)), 1e-9)


def _timed(call: Callable[..., int], args: Sequence[int], count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        call(*args)
    return (time.perf_counter() - begin) / count


def _copied(arrays: Sequence[Array]) -> dict[tuple[int, int], Array]:
    """A copy of each array's memory; arrays that are the same stay the same."""
    found: dict[tuple[int, int], Array] = {}
    for a in arrays:
        key = (a.ctypes.data, a.nbytes)
        if key not in found:
            found[key] = aligned_empty(a.shape, a.dtype)
            found[key][...] = a
    return found


@dataclass(slots=True)
class KernelTimer:
    """Kernels that note what they take by themselves when they are called.

    Attributes:
        seconds: What the last call took.
    """

    seconds: float = 0.0
    _known: dict[tuple[int, tuple[int, ...]], list[float]] = field(default_factory=dict)

    def watching(self, kernels: Sequence[Kernel]) -> list[Kernel]:
        """The kernels, each of which is timed when it is called."""
        return [self._watched(i, kernel) for i, kernel in enumerate(kernels)]

    def _watched(self, index: int, kernel: Kernel) -> Kernel:
        def run(arrays: Sequence[Array], sizes: Sequence[int]) -> int:
            if not isinstance(kernel, NativeKernel):  # an engine's
                begin = time.perf_counter()
                code = kernel(arrays, sizes)
                self.seconds = time.perf_counter() - begin
                return code
            known = self._known.setdefault((index, tuple(sizes)), [])
            if len(known) < _ENOUGH:
                known.append(kernel.seconds(arrays, sizes))
            self.seconds = known[-1]
            return kernel(arrays, sizes)

        return run
