"""One kernel as a Python function: every buffer by position, outputs written in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unity.codegen.foreign_code import foreign_code
from unity.codegen.llvm import compile_kernels
from unity.codegen.vm.specs import Scope
from unity.errors import UnityError
from unity.ir.dtype import Array
from unity.ir.prim_expr import SizeVar
from unity.ir.signature import buffer_type, scalar_params, size_params
from unity.ir.stmt import Buffer, PrimFunc
from unity.ir.symbols.convert import symbol_of, to_dim
from unity.ir.types import ObjectType, Type
from unity.machine.target import Target
from unity.runtime.arrays.accept import accept
from unity.runtime.arrays.overlap import refuse_overlap
from unity.runtime.bytecode import KernelInfo, Spec
from unity.runtime.bytecode.sizes import Size, Slot, evaluate
from unity.runtime.check import Binder
from unity.runtime.kernel_timer import NativeKernel
from unity.runtime.linking.link import link, thread_pool
from unity.runtime.threads import LIMIT_SYMBOL, Threads
from unity.runtime.vm import kernel_error
from unity.transform.blocks.dataflow import stored


def kernel_call(
    name: str, written: PrimFunc, func: PrimFunc, target: Target, cache: Path | None
) -> Callable[..., None]:
    """Compile a lowered prim func into a function of its parameters.

    Args:
        name: Its name.
        written: The prim func before lowering, whose buffers have their shapes yet.
        func: The lowered one.
        target: Where it runs.
        cache: The folder of compiled objects, or None.

    Raises:
        UnityError: It takes scalars that are no sizes, or calls a C function that nobody has.
    """
    if scalar_params(func):
        raise UnityError(f"{name} takes scalars; only buffers and sizes can be passed from Python")
    foreign = foreign_code({name: func}, here=True)
    code = compile_kernels({name: func}, target, cache, 1)
    pool = thread_pool(code.pool)
    imports = {**pool.addresses, **foreign.addresses()}
    library = link(code.objects, [code.symbols[name], LIMIT_SYMBOL], imports)
    Threads(pool, library, target.threads)
    scope = Scope()
    specs = [scope.spec(_buffer_type(b)) for b in written.buffers]
    strides = [_strides(b, scope) for b in written.buffers]
    sizes = [scope.size(symbol_of(v)) for v in size_params(func)]
    written_to = stored(written.body)
    changed = [k for k, b in enumerate(written.buffers) if b in written_to]
    names = [f"argument {b.name!r}" for b in written.buffers]
    info = KernelInfo(name, len(specs), len(sizes), code.messages[name])
    run = NativeKernel(library[code.symbols[name]], info)

    def call(*args: object) -> None:
        assert library is not None  # alive as long as this function
        if len(args) != len(written.params):
            raise UnityError(f"{name} takes {len(written.params)} arguments, got {len(args)}")
        binder = Binder(scope.symbols, [None] * len(scope.symbols))
        arrays: list[Array] = []
        apart: list[_Step] = []
        for param, value in zip(written.params, args, strict=True):
            if isinstance(param, Buffer):
                k = len(arrays)
                if k in changed and isinstance(value, np.ndarray):
                    _check_writable(param, value)
                arrays.append(_array(param, value, specs[k], binder))
                apart += _found_strides(param, arrays[-1], strides[k])
            elif isinstance(param, SizeVar) and isinstance(value, int):
                binder.size(scope.size(symbol_of(param)), value, f"argument {param.name!r}")
        for step in sorted(apart, key=lambda s: not s.taken):
            if step.taken or (
                isinstance(step.size, Slot) and binder.slots[step.size.index] is None
            ):
                binder.size(step.size, step.found, step.where)
        binder.solve()
        _check_bound(scope, binder)
        binder.finish()
        refuse_overlap(list(zip(names, arrays, strict=True)), changed)
        failed = run(arrays, [evaluate(s, binder.slots) for s in sizes])
        if failed:
            raise kernel_error(info, failed, "its outputs")

    return call


def _check_writable(buffer: Buffer, value: Array) -> None:
    if not value.flags.writeable:
        raise UnityError(f"argument {buffer.name!r} is an output, but the array is read-only")


def _array(buffer: Buffer, value: object, spec: Spec, binder: Binder) -> Array:
    where = f"argument {buffer.name!r}"
    array, _ = accept(value, buffer.dtype.name, where, keep=True)
    copied = isinstance(value, np.ndarray) and value.size and not np.shares_memory(array, value)
    if copied or (buffer.strides is None and not array.flags.c_contiguous):
        raise UnityError(
            f"{where}: a kernel's arrays must be contiguous, since it writes to them",
            hint="numpy.ascontiguousarray(x) makes one; or declare the buffer with T.strides",
        )
    binder.match(array, spec, where)
    return array


def _strides(buffer: Buffer, scope: Scope) -> tuple[Size, ...]:
    """How far the elements of a buffer are said to be apart along each axis."""
    dims = [to_dim(stride) for stride in buffer.strides or ()]
    known = tuple(d for d in dims if d is not None)
    if len(known) != len(dims):
        raise UnityError(f"the strides of the buffer {buffer.name} are no sizes")
    return scope.sizes(known)


@dataclass(frozen=True, slots=True)
class _Step:
    """How far elements are to be apart along an axis, and are, and whether any step is taken."""

    size: Size
    found: int
    where: str
    taken: bool


def _found_strides(buffer: Buffer, array: Array, strides: Sequence[Size]) -> list[_Step]:
    """The strides of an array against those that are declared.

    Raises:
        UnityError: Elements lie between elements.
    """
    where = f"argument {buffer.name!r}"
    if any(step % array.itemsize for step in array.strides) and array.size:
        raise UnityError(f"{where}: its strides, {array.strides} bytes, are no whole elements")
    found: list[_Step] = []
    for axis, size in enumerate(strides):
        taken = array.size > 0 and array.shape[axis] > 1
        step = array.strides[axis] // array.itemsize
        place = f"{where}, stride {axis} (in elements)"
        found.append(_Step(size, step if taken else abs(step), place, taken))
    return found


def _check_bound(scope: Scope, binder: Binder) -> None:
    for symbol, value in zip(scope.symbols, binder.slots, strict=True):
        if value is None:
            raise UnityError(
                f"no argument tells the size {symbol.name}",
                hint="let it be an extent or a stride of a buffer by itself, or the one unknown of "
                "a linear one, or a parameter",
            )


def _buffer_type(buffer: Buffer) -> Type:
    """What a kernel takes for a buffer; anything if its shape is no dim."""
    found = buffer_type(buffer)
    return found if isinstance(found.shape, tuple) else ObjectType()
