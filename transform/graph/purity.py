"""Which expressions may be removed, repeated or reordered."""

from __future__ import annotations

from typing import assert_never

from unity.ir.graph import (
    Body,
    Call,
    CallEngine,
    CallLibrary,
    CallPython,
    CallTir,
    Constant,
    Expr,
    Function,
    FunctionRef,
    If,
    Literal,
    MatchCast,
    Op,
    PrimValue,
    Scan,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    While,
)
from unity.ir.module import ExternFunc, IRModule
from unity.ir.types import FuncType
from unity.ir.visit import bodies_of
from unity.op.table import OPS


def is_pure(e: Expr, module: IRModule) -> bool:
    """Whether evaluating the expression does nothing but give its value.

    A Python function and a kernel that writes into its arguments are not; a loop that may not end
    counts as pure.
    """
    match e:
        case Var() | Constant() | ShapeValue() | PrimValue() | Literal() | FunctionRef() | Op():
            return True
        case Tuple() | TupleGet() | Function() | CallEngine() | CallLibrary():
            return True
        case CallTir():
            return all(i < 0 for i in e.inplace)
        case CallPython():
            return False
        case Call():
            return _callee_is_pure(e.callee, module)
        case If() | While() | Scan():
            return all(body_is_pure(b, module) for b in bodies_of(e))
        case _:
            assert_never(e)


def body_is_pure(body: Body, module: IRModule) -> bool:
    """Whether every binding of a body is pure; a run-time check is not."""
    return all(
        not isinstance(binding, MatchCast) and is_pure(binding.value, module)
        for block in body.blocks
        for binding in block.bindings
    )


def _callee_is_pure(callee: Op | FunctionRef | Var, module: IRModule) -> bool:
    match callee:
        case Op(name):
            return OPS[name].pure
        case FunctionRef(name):
            target = module[name]
            if isinstance(target, ExternFunc):
                return target.type.pure
            return isinstance(target, Function) and target.pure
        case Var():
            return isinstance(callee.type, FuncType) and callee.type.pure
        case _:
            assert_never(callee)
