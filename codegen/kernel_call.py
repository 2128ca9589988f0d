"""One kernel as a Python function: every buffer by position, outputs written in place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from unity.codegen.foreign_code import foreign_code
from unity.codegen.llvm import compile_kernels
from unity.codegen.vm.specs import Scope
from unity.errors import UnityError
from unity.ir.convert import symbol_of, to_dim
from unity.ir.dtype import Array
from unity.ir.prim_expr import SizeVar
from unity.ir.signature import scalar_params, size_params
from unity.ir.stmt import Buffer, PrimFunc
from unity.ir.types import ObjectType, TensorType, Type
from unity.machine.target import Target
from unity.runtime.arrays.accept import accept
from unity.runtime.arrays.overlap import refuse_overlap
from unity.runtime.check import Binder
from unity.runtime.kernel_timer import NativeKernel
from unity.runtime.link import link, thread_pool
from unity.runtime.program import KernelInfo, Spec
from unity.runtime.sizes import evaluate
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
        for param, value in zip(written.params, args, strict=True):
            if isinstance(param, Buffer):
                k = len(arrays)
                if k in changed and isinstance(value, np.ndarray):
                    _check_writable(param, value)
                arrays.append(_array(param, value, specs[k], binder))
            elif isinstance(param, SizeVar) and isinstance(value, int):
                binder.size(scope.size(symbol_of(param)), value, f"argument {param.name!r}")
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
    array, _ = accept(value, buffer.dtype.name, where)
    if isinstance(value, np.ndarray) and not np.shares_memory(array, value) and value.size:
        raise UnityError(f"{where}: a kernel's arrays must be contiguous, since it writes to them")
    binder.match(array, spec, where)
    return array


def _buffer_type(buffer: Buffer) -> Type:
    """What a kernel takes for a buffer; anything if its shape is no dim."""
    dims = [to_dim(extent) for extent in buffer.shape]
    known = tuple(d for d in dims if d is not None)
    if len(known) != len(dims):
        return ObjectType()
    return TensorType(known, buffer.dtype)
