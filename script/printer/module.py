"""Whole modules as text: the symbols first, then the functions in order of definition."""

from __future__ import annotations

from typing import assert_never

from unity.arguments import public
from unity.ir.dtype import Array
from unity.ir.graph import Expr, Function
from unity.ir.module import Definition, ExternFunc, IRModule
from unity.ir.prim_expr import PrimExpr, PrimVar, SizeVar
from unity.ir.stmt import Buffer, Param, PrimFunc, Stmt
from unity.ir.types import Type
from unity.op.infer import signatures_of

from .constants import INLINE_LIMIT, ConstantPool
from .fragment import fragment
from .graph import GraphText
from .lines import Lines
from .literals import attrs_text, element_text, string_text
from .names import Names
from .prim_expr import PrimText
from .stmt import DEFAULT_ALIGN, StmtText
from .symbols import SymbolTable
from .types import type_text


@public
def print_module(module: IRModule, weights: str | None = None, inline: int = INLINE_LIMIT) -> str:
    """The module as Python source that `parse` reads back.

    Large constants are written as ``R.const("name")``; `constants_of` gives their data.

    Args:
        module: The module.
        weights: What a program that is run calls their dict: ``R.const(weights["name"])``.
        inline: Elements of the largest constant that is written out.

    Raises:
        UnityError: A function is not in A-normal form, so that it has no text.
    """
    return _print(module, weights, inline)[0]


@public
def constants_of(module: IRModule, inline: int = INLINE_LIMIT) -> dict[str, Array]:
    """The constants of a module of more than `inline` elements, named as by `print_module`."""
    return _print(module, inline=inline)[1].arrays


def text(node: IRModule | Definition | Expr | Stmt | PrimExpr | Type, name: str = "main") -> str:
    """The source of a module, a function (under this name) or any part of one."""
    match node:
        case IRModule():
            return print_module(node)
        case Function() | PrimFunc() | ExternFunc():
            return print_module(IRModule({name: node}))
        case _:
            return fragment(node)


def _print(
    module: IRModule, weights: str | None = None, inline: int = INLINE_LIMIT
) -> tuple[str, ConstantPool]:
    lines, pool, table = Lines(), ConstantPool(weights, inline), SymbolTable(module)
    for line in table.lines():
        lines.add(line)
    if module.attrs:
        lines.add(f"script.module_attrs({attrs_text(module.attrs, table.renamed)})")
    signatures = signatures_of(module)
    for name, definition in module.items():
        if lines:
            lines.add("")
            lines.add("")
        names = Names(table.variables_in(name) | set(module) | ({weights} if weights else set()))
        match definition:
            case Function():
                GraphText(lines, names, table.renamed, pool, signatures).function(name, definition)
            case PrimFunc():
                _prim_func(lines, names, table, name, definition)
            case ExternFunc(symbol, kind):
                declared = type_text(kind, table.renamed)
                lines.add(f"{name} = script.extern({string_text(symbol)}, {declared})")
            case _:
                assert_never(definition)
    return lines.text(), pool


def _prim_func(lines: Lines, names: Names, table: SymbolTable, name: str, func: PrimFunc) -> None:
    attrs = f"(attrs={attrs_text(func.attrs, table.renamed)})" if func.attrs else ""
    lines.add(f"@script.prim_func{attrs}")
    visible = [p for p in func.params if isinstance(p, PrimVar)]
    printer = StmtText(names, table.renamed_sizes, table.renamed).into(lines, visible)
    params = [_param(printer, p) for p in func.params]
    with lines.block(lines.definition(name, params, " -> None:")):
        printer.suite(func.body)


def _param(printer: PrimText, param: Param) -> str:
    match param:
        case SizeVar():
            return f"{printer.expr(param)}: T.size"
        case PrimVar():
            return f'{printer.names.define(param, param.name)}: T.scalar("{param.dtype}")'
        case Buffer():
            name = printer.names.define(param, param.name)
            return f"{name}: {_buffer(printer, param)}"
        case _:
            assert_never(param)


def _buffer(printer: PrimText, b: Buffer) -> str:
    parts = ["Buffer", *(printer.expr(n) for n in b.shape)]
    if not b.shape:
        parts.append("()")
    if b.strides is not None:
        parts.append(f"T.strides({', '.join(printer.expr(s) for s in b.strides)})")
    if b.scope != "global":
        parts.append(f"T.scope({string_text(b.scope)})")
    if b.align != DEFAULT_ALIGN:
        parts.append(f"T.align({b.align})")
    return f"{element_text(b.dtype)}[{', '.join(parts)}]"
