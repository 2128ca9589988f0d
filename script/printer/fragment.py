"""Parts of programs as text, for messages and debugging: variables go by the names they carry."""

from __future__ import annotations

from unity.ir.graph import (
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
    Op,
    PrimValue,
    Scan,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    While,
)
from unity.ir.prim_expr import PrimExpr
from unity.ir.stmt import (
    Allocate,
    Assert,
    Block,
    Evaluate,
    For,
    IfThen,
    Let,
    PrimWhile,
    Seq,
    Stmt,
    Store,
)
from unity.ir.types import (
    FuncType,
    ObjectType,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
)

from .constants import ConstantPool
from .graph import GraphText
from .lines import Lines
from .names import Names
from .prim_expr import PrimText
from .stmt import StmtText
from .types import type_text


def fragment(node: Expr | Stmt | PrimExpr | Type) -> str:
    """The source of an expression, a statement or a type by itself.

    >>> from unity.ir.prim_expr import SizeVar
    >>> fragment((SizeVar("n") + 1) * 2)
    '(n + 1) * 2'
    """
    match node:
        case TensorType() | ShapeType() | PrimType() | TupleType() | FuncType() | ObjectType():
            return type_text(node, {})
        case (
            Block() | For() | Store() | IfThen() | Let() | Allocate() | PrimWhile() | Assert()
            | Evaluate() | Seq()
        ):  # fmt: skip
            lines = Lines()
            StmtText(Names()).into(lines, []).suite(node)
            return lines.text()
        case (
            Var() | Constant() | ShapeValue() | PrimValue() | Literal() | FunctionRef() | Op()
            | Tuple() | TupleGet() | Call() | CallTir() | CallLibrary() | CallPython()
            | CallEngine()
        ):  # fmt: skip
            return GraphText(Lines(), Names(), {}, ConstantPool(), {}).expr(node)
        case If() | While() | Scan() | Function():
            return f"<{type(node).__name__}>"
        case _:
            return PrimText(Names()).expr(node)
