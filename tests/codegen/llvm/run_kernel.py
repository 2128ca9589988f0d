"""Compiling a lowered prim func and calling it on arrays, to compare with numpy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from unity.codegen.llvm import ObjectCode, compile_kernels, host_target
from unity.ir.dtype import Array
from unity.ir.prim_expr import SizeVar
from unity.ir.signature import scalar_params, size_params
from unity.ir.stmt import PrimFunc
from unity.machine.target import Target
from unity.runtime.linking.link import Library, link, thread_pool
from unity.runtime.threads import LIMIT_SYMBOL, Threads

HOST = host_target(threads=2)
Sizes = Mapping[str, int]
_SCALARS: dict[str, Callable[[float], object]] = {
    "int64": lambda v: ctypes.c_int64(int(v)),
    "int32": lambda v: ctypes.c_int32(int(v)),
    "bool": lambda v: ctypes.c_uint8(int(v)),
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


class Kernel:
    """A compiled kernel, alive as long as this."""

    def __init__(self, code: ObjectCode, library: Library, name: str) -> None:
        self.code = code
        self.name = name
        self._func = code.functions[name]
        self._library = library

    def __call__(
        self, arrays: Sequence[Array], sizes: Sizes | None = None, scalars: Sequence[float] = ()
    ) -> int:
        """Run on all buffers in order; the result code."""
        args: list[object] = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
        args += [ctypes.c_int64((sizes or {})[s.name]) for s in size_params(self._func)]
        for param, value in zip(scalar_params(self._func), scalars, strict=True):
            args.append(_SCALARS[param.dtype.name](value))
        function = ctypes.CFUNCTYPE(ctypes.c_int32)(self._library[self.name])
        return int(function(*args))


def build(
    funcs: Mapping[str, PrimFunc], target: Target = HOST, *, checks: bool = False
) -> dict[str, Kernel]:
    """Compiled kernels by name."""
    code = compile_kernels(funcs, target, None, 1, checks=checks)
    pool = thread_pool(code.pool)
    library = link(code.objects, [*code.symbols.values(), LIMIT_SYMBOL], pool.addresses)
    Threads(pool, library, target.threads)
    return {name: Kernel(code, library, name) for name in funcs}


def run(
    func: PrimFunc,
    inputs: Sequence[Array],
    out: Array,
    sizes: Sizes | None = None,
    *,
    target: Target = HOST,
    checks: bool = False,
) -> Array:
    """The one output of a kernel; it must succeed."""
    kernel = build({"kernel": func}, target, checks=checks)["kernel"]
    result = np.ascontiguousarray(out)
    code = kernel([np.ascontiguousarray(a) for a in inputs] + [result], sizes)
    assert code == 0, f"the kernel returned {code}"
    return result


def sizes_of(values: Sizes) -> dict[SizeVar, int]:
    """The same sizes for the interpreter."""
    return {SizeVar(name): value for name, value in values.items()}
