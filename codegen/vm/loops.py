"""Loops as instructions: while and scan, their bodies in the same code and the same registers.

State registers are updated by copy, at the start and after each round, so that what a body computes
may lie in the same place in every round: a loop allocates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from unity.ir.graph import Expr, Function, Scan, Var, While
from unity.ir.lattice import atom_type
from unity.ir.types import ObjectType, TupleType, Type
from unity.runtime import bytecode as bc
from unity.runtime.bytecode.sizes import Size, combine

if TYPE_CHECKING:
    from unity.codegen.vm.body import FunctionBuilder


def while_loop(b: FunctionBuilder, e: While, label: str) -> bc.Tree:
    """A loop whose condition is computed anew before each round."""

    def head() -> bc.Reg:
        condition = b.body(e.condition)
        assert isinstance(condition, int)
        return condition

    return _rounds(b, e.vars, e.init, head, lambda: b.body(e.body), label)


def scan_loop(b: FunctionBuilder, e: Scan, of: Type, label: str) -> bc.Tree:
    """A loop of instructions if all shapes are known before it, else of a closure."""
    assert isinstance(of, TupleType)
    inputs = tuple(b.reg(i, label) for i in e.inputs)
    known = (*(b.registers[i] for i in inputs), b.scope.spec(of))
    if all(_is_known(spec) and not b.scope.unbound(spec) for spec in known):
        return _counted(b, e, of, inputs, label)
    params = (*e.state, *e.elements)
    result = atom_type(e.body.result) or ObjectType()
    closure = b.closure(Function(params, e.body, result), label)
    init = tuple(b.atom(i, label) for i in e.init)
    dst = b.fresh(b.scope.spec(of))
    b.emit(bc.RunScan(dst, closure, init, inputs), label)
    return dst


def _counted(
    b: FunctionBuilder, e: Scan, of: TupleType, inputs: Sequence[bc.Reg], label: str
) -> bc.Tree:
    """A loop that counts; what a step computes for a stack is computed in its place there."""
    length, count = _shape(b, inputs[0])[0], len(e.state)
    stacks = [b.allocate(t, label) for t in of.fields[count:]]
    step, left = b.scope.counter("step"), b.register(bc.ScalarSpec("int64"))
    b.emit(bc.SetSlot(step.index, 0), label)

    def head() -> bc.Reg:
        b.emit(bc.MakeScalar(left, combine("sub", length, step), "int64"), label)
        return left

    def body() -> bc.Tree:
        for var, source in zip(e.elements, inputs, strict=True):
            element = _element(b, source, step, label)
            b.env[var] = element
            b.shared.add(element)
        begin = len(b.code)
        result = b.body(e.body)
        assert isinstance(result, tuple)
        for stack, value in zip(stacks, result[count:], strict=True):
            assert isinstance(value, int)
            _put(b, stack, value, step, begin, label)
        b.emit(bc.SetSlot(step.index, combine("add", step, 1)), label)
        return result[:count]

    return (*_rounds(b, e.state, e.init, head, body, label), *stacks)


def _rounds(
    b: FunctionBuilder,
    state: Sequence[Var],
    init: Sequence[Expr],
    head: Callable[[], bc.Reg],
    body: Callable[[], bc.Tree],
    label: str,
) -> tuple[bc.Tree, ...]:
    """Rounds of `body`, which gives the next state, while what `head` gives is true."""
    start = tuple(r for i in init for r in bc.leaves(b.atom(i, label)))
    for var in state:
        b.env[var] = b.fresh(b.scope.spec(var.type))
    registers = tuple(r for var in state for r in bc.leaves(b.env[var]))
    b.emit(bc.Update(registers, start), label)
    before = set(b.scope.bound)
    top = len(b.code)
    condition = head()
    branch = b.emit(bc.Branch(condition, 0), label)
    following = body()
    b.emit(bc.Update(registers, tuple(bc.leaves(following))), label)
    b.emit(bc.Jump(top), label)
    b.code[branch] = bc.Branch(condition, len(b.code))
    b.scope.bound = before
    return tuple(b.env[var] for var in state)


def _put(
    b: FunctionBuilder, stack: bc.Reg, value: bc.Reg, step: Size, begin: int, label: str
) -> None:
    """Put a step's output into its slice; one allocated since `begin` is moved there."""
    for at in range(begin, len(b.code)):
        made = b.code[at]
        if isinstance(made, bc.AllocTensor) and made.dst == value:
            b.code[at] = bc.Element(value, stack, step, made.shape)
            return
    b.emit(bc.Fill(_element(b, stack, step, label), value), label)


def _element(b: FunctionBuilder, source: bc.Reg, index: Size, label: str) -> bc.Reg:
    """A slice along the leading axis."""
    spec, shape = b.registers[source], _shape(b, source)[1:]
    assert isinstance(spec, bc.TensorSpec)
    dst = b.register(bc.TensorSpec(spec.dtype, shape, len(shape)))
    b.emit(bc.Element(dst, source, index, shape), label)
    return dst


def _shape(b: FunctionBuilder, register: bc.Reg) -> tuple[Size, ...]:
    spec = b.registers[register]
    assert isinstance(spec, bc.TensorSpec)
    assert spec.shape is not None
    return spec.shape


def _is_known(spec: bc.Spec) -> bool:
    """Whether a value is made of tensors (or is one) of known dtypes and shapes."""
    if isinstance(spec, bc.TupleSpec):
        return all(map(_is_known, spec.fields))
    return isinstance(spec, bc.TensorSpec) and spec.shape is not None and spec.dtype is not None
