"""An engine's function as a kernel: called by address from native code, or with arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from unity.errors import UnityError
from unity.ir.dims import Dim
from unity.ir.dtype import Array
from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.ir.target import Target
from unity.ir.types import TensorType, TupleType, Type
from unity.runtime.failure import note_failure
from unity.transform.graph.resolve import Compiled, engine_of

FAILED = -3
"""What a call returns when the engine raised; the error is kept and raised by the slow way."""
_KEPT = 64


class EngineKernel:
    """Runs one engine function under the kernels' C ABI.

    Args:
        name: The function.
        function: What the engine compiles.
        target: The machine.
        threads: How many threads the executable uses at the moment; for each number that is met
            the engine compiles once.
    """

    def __init__(
        self, name: str, function: Function, target: Target, threads: Callable[[], int]
    ) -> None:
        self.name = name
        self.engine = str(function.attrs["engine"])
        self._function = function
        self._target = target
        self._threads = threads
        inputs = [t for p in function.params for t in _tensors(p.type)]
        self._types = [*inputs, *_tensors(function.result)]
        self._inputs = len(inputs)
        self._dtypes = [np.dtype(_dtype(t)) for t in self._types]
        self._ranks = [len(_shape(t)) for t in self._types]
        self._compiled: dict[int, Compiled] = {}
        self._arrays: dict[tuple[int, ...], list[Array]] = {}
        buffers = [ctypes.c_void_p] * len(self._types)
        sizes = [ctypes.c_int64] * sum(self._ranks)
        self._callback = ctypes.CFUNCTYPE(ctypes.c_int32, *buffers, *sizes)(self._called)
        self._runner(threads())

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
        try:
            self._runner(self._threads())(arrays[: self._inputs], arrays[self._inputs :])
        except UnityError:
            raise
        except Exception as error:
            shapes = ", ".join(str(a.shape) for a in arrays[: self._inputs])
            raise UnityError(
                f"the engine {self.engine} failed in {self.name} on inputs of shapes {shapes}: "
                f"{type(error).__name__}: {error}",
                hint="compile without it: resolve={'*': 'tir'}",
            ) from error

    def _runner(self, threads: int) -> Compiled:
        if threads not in self._compiled:
            attrs = self._function.attrs.without("engine")  # to its engine it is a plain function
            module = IRModule({"main": replace(self._function, attrs=attrs)})
            try:
                made = engine_of(self.engine).compile(module, self._target, threads)
            except UnityError:
                raise
            except Exception as error:
                raise UnityError(
                    f"the engine {self.engine} can't compile {self.name}: "
                    f"{type(error).__name__}: {error}",
                    hint="compile without it: resolve={'*': 'tir'}",
                ) from error
            self._compiled[threads] = made
        return self._compiled[threads]

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
        at = len(self._types)
        for address, dtype, rank in zip(words[:at], self._dtypes, self._ranks, strict=True):
            shape = words[at : at + rank]
            at += rank
            size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            stretch = ctypes.c_char * size
            memory = memoryview(stretch.from_address(address) if size else bytearray())
            found.append(np.frombuffer(memory, dtype).reshape(shape))
        return found


def _tensors(t: Type) -> list[TensorType]:
    fields = t.fields if isinstance(t, TupleType) else (t,)
    return [f for f in fields if isinstance(f, TensorType)]


def _shape(t: TensorType) -> tuple[Dim, ...]:
    assert isinstance(t.shape, tuple)
    return t.shape


def _dtype(t: TensorType) -> np.dtype[np.generic]:
    assert t.dtype is not None
    return t.dtype.numpy
