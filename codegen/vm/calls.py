"""Calls as instructions: of operators, functions, closures, kernels and Python functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from unity.codegen.vm.hosts import OpHost
from unity.codegen.vm.memory_ops import MEMORY_OPS
from unity.errors import place_of
from unity.ir.attrs import AttrValue
from unity.ir.dims import SymDim
from unity.ir.graph import Call, CallPython, CallTir, FunctionRef, Op, Var
from unity.ir.lattice import atom_type
from unity.ir.types import ObjectType, ShapeType, Type
from unity.op.effects import ASSERT, PRINT
from unity.op.scalar import MOVES, SCALAR_TENSOR
from unity.op.table import OPS
from unity.runtime import bytecode as bc
from unity.transform.graph.symbols import kernel_sizes

if TYPE_CHECKING:
    from unity.codegen.vm.body import FunctionBuilder


def call(b: FunctionBuilder, e: Call, of: Type, label: str) -> bc.Tree:
    """A call of an operator, a function or a closure."""
    match e.callee:
        case Op(name):
            if name in MEMORY_OPS:
                return MEMORY_OPS[name](b, e, label)
            if name in (PRINT, ASSERT):
                return _effect(b, e, label)
            if name in MOVES:
                return _moved_number(b, name, e, of, label)
            return _host_op(b, name, e, of, label)
        case FunctionRef(name):
            args = tuple(b.atom(a, label) for a in e.args)
            dst = b.fresh(b.scope.spec(of))
            b.emit(bc.CallFunction(dst, b.function(name), args, place_of(e.span)), label)
            return dst
        case Var():
            args = tuple(b.atom(a, label) for a in e.args)
            dst = b.fresh(b.scope.spec(of))
            b.emit(bc.CallClosure(dst, b.reg(e.callee, label), args), label)
            return dst
        case _:
            assert_never(e.callee)


def _effect(b: FunctionBuilder, e: Call, label: str) -> bc.Tree:
    """A print or an assert."""
    *condition, values = (b.atom(a, label) for a in e.args)
    told, text = values if isinstance(values, tuple) else (values,), str(e.attrs["format"])
    match condition:
        case [int(register)]:
            b.emit(bc.Assert(register, told, text, place_of(e.span)), label)
        case _:
            b.emit(bc.Print(told, text, place_of(e.span)), label)
    return ()


def _moved_number(b: FunctionBuilder, name: str, e: Call, of: Type, label: str) -> bc.Reg:
    """A scalar put into a tensor of rank 0, or read from one."""
    src = b.reg(e.args[0], label)
    if name == SCALAR_TENSOR:
        dst = b.allocate(of, label)
        b.emit(bc.StoreScalar(dst, src), label)
    else:
        dst = b.register(b.scope.spec(of))
        b.emit(bc.ReadScalar(dst, src), label)
    return dst


def _host_op(b: FunctionBuilder, name: str, e: Call, of: Type, label: str) -> bc.Tree:
    """An op without a kernel: a shape that the types tell, or its reference on the host."""
    if isinstance(of, ShapeType) and isinstance(of.dims, tuple):
        spec = b.scope.spec(of)
        if not b.scope.unbound(spec):
            dst = b.register(spec)
            b.emit(bc.MakeShape(dst, b.scope.sizes(of.dims)), label)
            return dst
    if name == "tensor_to_shape":
        dst = b.register(b.scope.spec(of))
        b.emit(bc.ReadShape(dst, b.reg(e.args[0], label)), label)
        return dst
    row = OPS.get(name)
    if row is None or row.reference is None or any(_symbolic(v) for v in e.attrs.values()):
        return b.missing(f"operator {name}", of)
    args = tuple(b.atom(a, label) for a in e.args)
    result = b.fresh(b.scope.spec(of))
    host = b.tables.host(f"op:{name}", OpHost(name, e.attrs))
    b.emit(bc.CallHost(result, host, args), label)
    b.shared.update(bc.leaves(result))
    return result


def call_tir(b: FunctionBuilder, e: CallTir, label: str) -> bc.Tree:
    """A kernel call that is not planned: its outputs are allocated here."""
    inputs = [b.reg(a, label) for a in e.args]
    aliases = e.inplace or (-1,) * len(e.out)
    made: list[bc.Reg] = []
    outputs: list[bc.Reg] = []
    made_types: list[Type] = []
    for out, alias in zip(e.out, aliases, strict=True):
        if alias < 0:
            made.append(b.allocate(out, label))
            made_types.append(out)
        outputs.append(inputs[alias] if alias >= 0 else made[-1])
    func = b.tables.prim_func(e.callee.name)
    types = [*(atom_type(a) or ObjectType() for a in e.args), *made_types]
    sizes = b.scope.sizes(tuple(kernel_sizes(func, types, e.sym_args).values()))
    kernel = b.tables.kernel(e.callee.name)
    b.emit(bc.CallKernel(kernel, (*inputs, *made), sizes, place_of(e.span)), label)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def call_python(b: FunctionBuilder, e: CallPython, label: str) -> bc.Tree:
    """A destination-passing call of a Python function."""
    outputs = tuple(b.allocate(out, label) for out in e.out)
    args = (*(b.atom(a, label) for a in e.args), *outputs)
    name = getattr(e.function, "__qualname__", "python")
    host = b.tables.host(f"python:{name}", e.function)
    dst: bc.Tree = outputs[0] if len(outputs) == 1 else outputs
    b.emit(bc.CallHost(dst, host, args, destination=True, where=place_of(e.span)), label)
    return dst


def _symbolic(value: AttrValue) -> bool:
    if isinstance(value, tuple):
        return any(_symbolic(v) for v in value)
    return isinstance(value, SymDim)
