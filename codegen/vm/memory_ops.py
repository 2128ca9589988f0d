"""The ``memory.*`` operators of a planned module as instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from unity.errors import place_of
from unity.ir.dtype import dtype
from unity.ir.graph import Call, Expr, FunctionRef, ShapeValue
from unity.runtime import bytecode as bc
from unity.runtime.bytecode.sizes import Size, product

if TYPE_CHECKING:
    from unity.codegen.vm.body import FunctionBuilder


def _shape(builder: FunctionBuilder, value: Expr) -> tuple[Size, ...]:
    assert isinstance(value, ShapeValue), value
    return builder.scope.sizes(value.dims)


def _dtype(e: Call) -> str:
    kind = e.attrs["dtype"]
    return dtype(kind).name if isinstance(kind, str) else str(kind)


def _alloc_arena(b: FunctionBuilder, e: Call, label: str) -> bc.Tree:
    dst = b.register(bc.ObjectSpec())
    b.emit(bc.AllocArena(dst, product(_shape(b, e.args[0]))), label)
    return dst


def _view(b: FunctionBuilder, e: Call, label: str) -> bc.Tree:
    (offset,), shape = _shape(b, e.args[1]), _shape(b, e.args[2])
    dst = b.register(bc.TensorSpec(_dtype(e), shape, len(shape)))
    b.emit(bc.View(dst, b.reg(e.args[0], label), offset, shape, _dtype(e)), label)
    b.shared.add(dst)
    return dst


def _alloc_tensor(b: FunctionBuilder, e: Call, label: str) -> bc.Tree:
    shape = _shape(b, e.args[0])
    dst = b.register(bc.TensorSpec(_dtype(e), shape, len(shape)))
    b.emit(bc.AllocTensor(dst, shape, _dtype(e)), label)
    return dst


def _reshape_view(b: FunctionBuilder, e: Call, label: str) -> bc.Tree:
    src, shape = b.reg(e.args[0], label), _shape(b, e.args[1])
    spec = b.registers[src]
    assert isinstance(spec, bc.TensorSpec)
    dst = b.register(bc.TensorSpec(spec.dtype, shape, len(shape)))
    b.emit(bc.Reshape(dst, src, shape), label)
    b.roots[dst] = b.roots.get(src, src)
    if src in b.shared:
        b.shared.add(dst)
    return dst


def _call_kernel(b: FunctionBuilder, e: Call, label: str) -> bc.Tree:
    callee, arguments, numbers = e.args
    assert isinstance(callee, FunctionRef)
    tree = b.atom(arguments, label)
    assert isinstance(tree, tuple)
    kernel, registers = b.tables.kernel(callee.name), tuple(bc.leaves(tree))
    outputs = registers[len(registers) - b.tables.outputs(callee.name) :]
    computes = ", ".join(b.made.get(r, label) for r in outputs)
    b.emit(bc.CallKernel(kernel, registers, _shape(b, numbers), place_of(e.span)), computes)
    return ()


MEMORY_OPS: dict[str, Callable[[FunctionBuilder, Call, str], bc.Tree]] = {
    "memory.alloc_arena": _alloc_arena,
    "memory.view": _view,
    "memory.alloc_tensor": _alloc_tensor,
    "memory.reshape_view": _reshape_view,
    "memory.call_kernel": _call_kernel,
}
