"""One kernel, ready to run on arrays: binds sizes from shapes, then runs the compiled body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError
from unity.interpreter.expr import Frame, Slots
from unity.interpreter.scalar import hold
from unity.interpreter.sizes import Sizes
from unity.interpreter.stmt import compile_stmt
from unity.interpreter.storage import fresh
from unity.ir.dtype import Array
from unity.ir.prim_expr import PrimVar, SizeVar
from unity.ir.signature import scalar_params, size_params
from unity.ir.stmt import Buffer, PrimFunc


class Kernel:
    """A prim func compiled to Python closures.

    Args:
        func: The prim func, lowered or not.
        name: What errors call it.

    Raises:
        UnityError: The prim func is ill-formed.
    """

    def __init__(self, func: PrimFunc, name: str = "kernel") -> None:
        self.func = func
        self.name = name
        self._slots = Slots()
        for size in size_params(func):
            self._slots.define(size)
        for param in func.params:
            self._slots.define(param)
        self._body = compile_stmt(func.body, self._slots)

    def __call__(
        self,
        arrays: Sequence[Array],
        sizes: Mapping[SizeVar, int] | None = None,
        scalars: Sequence[int | float | bool] = (),
    ) -> tuple[Array, ...]:
        """Run on all buffers in parameter order; outputs are written in place and returned.

        Output arrays may be left out where their shapes follow from the sizes; they are then made.

        Args:
            arrays: One per buffer parameter, or one per input.
            sizes: Values of symbols; needed for those no buffer shape gives.
            scalars: Values of the `PrimVar` parameters in order.

        Raises:
            UnityError: An array does not fit its buffer, a symbol has two values, an access is
                out of bounds, an assertion fails.
        """
        buffers = self.func.buffers
        outputs = self.num_outputs
        inputs = len(buffers) - outputs
        if len(arrays) not in (len(buffers), inputs):
            raise UnityError(
                f"{self.name} takes {inputs} inputs and {outputs} outputs, got {len(arrays)} arrays"
            )
        bound = self._bind(buffers[: len(arrays)], arrays, Sizes(sizes))
        made = [self._make(b, bound) for b in buffers[len(arrays) :]]
        given = [*arrays, *made]
        frame: Frame = [None] * len(self._slots)
        for buffer, array in zip(buffers, given, strict=True):
            frame[self._slots.of(buffer)] = _as_stored(buffer, array)
        for size in size_params(self.func):
            frame[self._slots.of(size)] = bound.evaluate(size)
        wanted = scalar_params(self.func)
        if len(wanted) != len(scalars):
            raise UnityError(f"{self.name} takes {len(wanted)} scalars, got {len(scalars)}")
        for var, value in zip(wanted, scalars, strict=True):
            frame[self._slots.of(var)] = hold(value, var.dtype)
        try:
            with np.errstate(all="ignore"):
                self._body(frame)
        except UnityError as error:
            where = f"{self.name}: {error.message}"
            raise UnityError(where, error.span, error.hint) from None
        return tuple(given[inputs:])

    @property
    def num_outputs(self) -> int:
        """How many of the last buffers are outputs."""
        count = self.func.attrs.get("num_outputs", 1)
        assert isinstance(count, int)
        return count

    def explicit_params(self) -> tuple[SizeVar | PrimVar, ...]:
        """The scalar parameters that ``sym_args`` of a `CallTir` give, in order."""
        return tuple(p for p in self.func.params if isinstance(p, SizeVar | PrimVar))

    def _bind(self, buffers: Sequence[Buffer], arrays: Sequence[Array], sizes: Sizes) -> Sizes:
        pending = []
        for buffer, array in zip(buffers, arrays, strict=True):
            where = f"{self.name}: buffer {buffer.name!r}"
            if array.dtype != buffer.dtype.numpy:
                raise UnityError(f"{where} is of {buffer.dtype}, got {array.dtype}")
            shape: tuple[int, ...] = array.shape
            if len(shape) != len(buffer.shape):
                if len(buffer.shape) != 1:
                    raise UnityError(f"{where} has rank {len(buffer.shape)}, got shape {shape}")
                shape = (array.size,)  # a lowered kernel sees memory flat
            for axis, (extent, got) in enumerate(zip(buffer.shape, shape, strict=True)):
                pending.append((extent, got, f"{where}, dim {axis},"))
            for axis, extent in enumerate(buffer.strides or ()):
                if array.size and shape[axis] > 1:
                    step = array.strides[axis] // array.itemsize
                    pending.append((extent, step, f"{where}, stride {axis},"))
        while pending:
            left = [each for each in pending if not sizes.match(*each)]
            if len(left) == len(pending):
                _, got, where = left[0]
                raise UnityError(f"{where} got {got}, which does not determine its symbols")
            pending = left
        return sizes

    def _make(self, buffer: Buffer, sizes: Sizes) -> Array:
        return fresh([sizes.evaluate(n) for n in buffer.shape], buffer.dtype)


def _as_stored(buffer: Buffer, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array with the buffer's rank."""
    if array.ndim == len(buffer.shape):
        return array
    if not array.flags.c_contiguous:
        raise UnityError(f"buffer {buffer.name!r} is flat and needs a contiguous array")
    return array.reshape(-1)


def run_prim_func(
    func: PrimFunc,
    arrays: Sequence[Array],
    sizes: Mapping[SizeVar, int] | None = None,
    scalars: Sequence[int | float | bool] = (),
) -> tuple[Array, ...]:
    """Interpret a prim func once; arguments, result and errors are those of `Kernel.__call__`.

    >>> from unity.ir.dtype import FLOAT32
    >>> from unity.ir.prim_expr import Load, PrimVar, imm
    >>> from unity.ir.stmt import Buffer, For, PrimFunc, Store
    >>> a, b = (Buffer(name, (imm(3),), FLOAT32) for name in "ab")
    >>> i = PrimVar("i")
    >>> double = For(i, imm(0), imm(3), Store(b, (i,), Load(a, (i,)) * 2))
    >>> run_prim_func(PrimFunc((a, b), double), [np.ones(3, np.float32)])
    (array([2., 2., 2.], dtype=float32),)
    """
    return Kernel(func)(arrays, sizes, scalars)
