"""`FoldConstant`: calls of operators on constants become constants.

As in TVM, a call without operands (``zeros(shape=[512, 512])``) is left: it is smaller than its
value.

>>> from unity import relay
>>> x = relay.var("x", shape=(2,))
>>> mod = relay.IRModule.from_expr(x + (relay.const(1.0) + relay.const(2.0)))
>>> print(relay.transform.FoldConstant()(mod))
#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) {
  %0 = add(%x, 3.0f);
  %0
}
<BLANKLINE>
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from unity.errors import UnsupportedError
from unity.frontend.relay import syntax
from unity.frontend.relay.operators.marking import CONVERTERS as MARKS
from unity.frontend.relay.translator import translate
from unity.interpreter import interpret

from .rewriting import called, each, rewritten


def fold_constant(module: syntax.Module) -> syntax.Module:
    """A module whose calls on constants are computed."""
    return each(module, lambda _, function: rewritten(function, _folded))


def _folded(_: syntax.Expr, node: syntax.Expr) -> syntax.Expr:
    match node:
        case syntax.Call() if called(node) and called(node) not in MARKS:
            if node.arguments and all(map(_is_constant, node.arguments)):
                with suppress(UnsupportedError):
                    return _computed(node)
        case syntax.TupleGetItem(syntax.Tuple(fields), index) if index < len(fields):
            return fields[index]
        case syntax.If(syntax.Constant(value), then, otherwise):
            return then if value.reshape(-1)[0] else otherwise
        case _:
            pass
    return node


def _is_constant(node: syntax.Expr) -> bool:
    if isinstance(node, syntax.Tuple):
        return all(map(_is_constant, node.fields))
    return isinstance(node, syntax.Constant)


def _computed(call: syntax.Call) -> syntax.Expr:
    main = syntax.Function((), call, span=call.span)
    module = translate(syntax.Module({"main": main}, file="<script>"))
    return _constant(interpret(module, "main", []), call)


def _constant(value: object, call: syntax.Call) -> syntax.Expr:
    if isinstance(value, tuple):
        return syntax.Tuple(tuple(_constant(v, call) for v in value), call.span)
    array = np.array(value, order="C")
    array.flags.writeable = False
    return syntax.Constant(array, call.span)
