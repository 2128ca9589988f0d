"""An engine's function as a kernel: called by address from native code, or with arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import Array, dtype
from unity.runtime.engines.engine import Compiled
from unity.runtime.failure import note_failure

FAILED = -3
"""What a call returns when the engine raised; the error is kept and raised by the slow way."""
_KEPT = 64


@dataclass(frozen=True, slots=True)
class EngineCode:
    """A function that an engine computes.

    Attributes:
        name: The kernel.
        engine: The engine.
        inputs: How many of its tensors are inputs; the others are results.
        dtypes: Of all its tensors.
        ranks: Of all its tensors.
        make: What the engine made of it for a number of threads; asked again for the same number,
            it gives the same.
        module: Where the engine is defined, for messages.
    """

    name: str
    engine: str
    inputs: int
    dtypes: tuple[str, ...]
    ranks: tuple[int, ...]
    make: Callable[[int], Compiled]
    module: str = ""


class EngineKernel:
    """Runs one engine function under the kernels' C ABI.

    Args:
        code: The function.
        threads: How many threads the executable uses at the moment.
    """

    def __init__(self, code: EngineCode, threads: Callable[[], int]) -> None:
        self._code = code
        self._threads = threads
        self._dtypes = [dtype(name).numpy for name in code.dtypes]
        self._arrays: dict[tuple[int, ...], list[Array]] = {}
        buffers = [ctypes.c_void_p] * len(code.dtypes)
        sizes = [ctypes.c_int64] * sum(code.ranks)
        self._callback = ctypes.CFUNCTYPE(ctypes.c_int32, *buffers, *sizes)(self._called)
        code.make(threads())

    @property
    def address(self) -> int:
        """Where native code calls it."""
        found = ctypes.cast(self._callback, ctypes.c_void_p).value
        assert found is not None
        return found

    def __call__(self, arrays: Sequence[Array], sizes: Sequence[int]) -> int:
        """Run on inputs and destinations.

        Raises:
            UnityError: The engine failed.
        """
        self._run(arrays)
        return 0

    def _run(self, arrays: Sequence[Array]) -> None:
        code = self._code
        try:
            code.make(self._threads())(arrays[: code.inputs], arrays[code.inputs :])
        except UnityError:
            raise
        except Exception as error:
            shapes = ", ".join(str(a.shape) for a in arrays[: code.inputs])
            raise UnityError(
                f"the engine {code.engine} failed in {code.name} on inputs of shapes {shapes}: "
                f"{type(error).__name__}: {error}",
                hint="compile without it: resolve={'*': 'tir'}",
            ) from error

    def _called(self, *words: int | None) -> int:
        """A call from native code: addresses, then the dims of all buffers."""
        try:
            key = tuple(w or 0 for w in words)
            arrays = self._arrays.get(key)
            if arrays is None:
                if len(self._arrays) >= _KEPT:
                    self._arrays.clear()
                arrays = self._arrays[key] = self._viewed(key)
            self._run(arrays)
        except Exception as error:
            note_failure(error)
            return FAILED
        return 0

    def _viewed(self, words: tuple[int, ...]) -> list[Array]:
        """The arrays at some addresses."""
        found: list[Array] = []
        at = len(self._dtypes)
        for address, kind, rank in zip(words[:at], self._dtypes, self._code.ranks, strict=True):
            shape = words[at : at + rank]
            at += rank
            size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
            memory = (
                memoryview((ctypes.c_char * size).from_address(address)) if size else bytearray()
            )
            found.append(np.frombuffer(memory, kind).reshape(shape))
        return found
