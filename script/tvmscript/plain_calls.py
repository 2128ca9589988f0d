"""Scalar functions of TVMScript in terms of others, still in its own words.

Comes in: a call in a prim func. Comes out: what it means, in calls that `calls` knows. Each has a
test that compares the numbers with TVM's.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence

from unity.arguments import Named, Signature

from ..parser.source import Source
from .spellings import SHORT
from .syntax import at_place, constant, keyword, path_of, written

_NO_VALUE = ("", "void", "handle")
"""What a call of a foreign function is said to give where nothing is done with it."""
_BY_VALUE = ("int32", "int64", "float32", "float64")
_OPS = frozenset({"tvm.ir.Op.get"})


def plain_call(source: Source, node: ast.Call) -> ast.expr:
    """A call in other words; the call itself if there are none.

    Raises:
        UnityError: It doesn't fit its signature, or what it says has no meaning here.
    """
    path = path_of(node.func)
    if path in _RULES:
        return _RULES[path](source, node)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "vload":
        return _loaded(source, node, node.func.value)
    return node


def stored(source: Source, node: ast.Call) -> list[ast.stmt] | None:
    """``B.vstore([i], value, predicate=p)`` as a statement; None for other calls."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "vstore":
        return None
    given = _given(source, node, "Buffer.vstore(begin, value, predicate=None)")
    index = _index(given["begin"])
    target = ast.Subscript(node.func.value, index, ast.Store())
    if (predicate := given.get("predicate")) is None or constant(predicate) is None:
        return [at_place(ast.Assign([target], given["value"]), node)]
    args = [node.func.value, _as_tuple(index), given["value"], predicate]
    call = ast.Call(written("T.store", node), args, [])
    return [at_place(ast.Expr(call), node)]


def _given(source: Source, node: ast.Call, signature: str) -> Mapping[str, ast.expr]:
    named = [Named(k.arg, k.value, source.span(k)) for k in node.keywords]
    return Signature.parse(signature).bind(node.args, named, source.span(node)).named


def _index(begin: ast.expr) -> ast.expr:
    parts = begin.elts if isinstance(begin, ast.List | ast.Tuple) else [begin]
    return parts[0] if len(parts) == 1 else ast.Tuple(list(parts), ast.Load())


def _as_tuple(index: ast.expr) -> ast.expr:
    return index if isinstance(index, ast.Tuple) else ast.Tuple([index], ast.Load())


def _loaded(source: Source, node: ast.Call, buffer: ast.expr) -> ast.expr:
    """``A.vload([i], predicate=p)``."""
    given = _given(source, node, "Buffer.vload(begin, dtype=None, predicate=None)")
    if constant(given.get("dtype")) is not None:
        raise source.error(given["dtype"], "a load has its buffer's dtype")
    index = _index(given["begin"])
    if (predicate := given.get("predicate")) is None or constant(predicate) is None:
        return at_place(ast.Subscript(buffer, index, ast.Load()), node)
    return at_place(
        ast.Call(written("T.load", node), [buffer, _as_tuple(index), predicate], []), node
    )


def _extern(source: Source, node: ast.Call) -> ast.expr:
    """The dtype is the first argument, or said by name: then the function is the first."""
    said = [k for k in node.keywords if k.arg == "dtype"]
    others = [k for k in node.keywords if k.arg != "dtype"]
    if others:
        raise source.error(others[0], f"{path_of(node.func)} has no parameter {others[0].arg!r}")
    args = list(node.args)
    kind = said[0].value if said else args.pop(0) if args else None
    return _foreign_call(source, node, kind, args)


def _foreign_call(
    source: Source, node: ast.Call, kind: ast.expr | None, args: Sequence[ast.expr]
) -> ast.expr:
    name = _dtype_name(kind)
    if name is None or (name not in SHORT and name not in _NO_VALUE):
        raise source.error(
            kind or node,
            "T.call_extern says first what the function gives, or dtype=",
            'T.call_extern("int32", "library.function", ...), "void" for nothing',
        )
    keywords = [] if name in _NO_VALUE else [keyword("dtype", ast.Constant(name))]
    return at_place(ast.Call(written("T.call_extern", node), list(args), keywords), node)


def _dtype_name(kind: ast.expr | None) -> str | None:
    match kind:
        case ast.Constant(str(name)):
            return name
        case ast.Attribute() if path_of(kind).startswith("T."):
            return path_of(kind).removeprefix("T.")
        case _:
            return None


def without_value(node: ast.expr) -> ast.expr:
    """A foreign call by itself: what it would give is not looked at, so it may be anything."""
    if not isinstance(node, ast.Call) or path_of(node.func) != "T.call_extern":
        return node
    kept = [k for k in node.keywords if constant(k.value) in _BY_VALUE]
    return at_place(ast.Call(node.func, node.args, kept), node)


def _operation(source: Source, node: ast.Call) -> ast.expr:
    """``T.Call(tvm.ir.Op.get("tirx.call_extern"), [...], ret_ty="void")``."""
    signature = "T.Call(op, args, ret_ty=None, *, dtype=None)"
    first = constant(node.args[0]) if node.args else None
    if isinstance(first, str) and first not in SHORT and first not in _NO_VALUE:
        given = dict(_given(source, node, signature))
    elif isinstance(first, str):  # v0.18: the dtype is first
        given = dict(_given(source, node, "T.Call(ret_ty, op, args)"))
    else:
        given = dict(_given(source, node, signature))
    op, args = given["op"], given["args"]
    if isinstance(op, ast.Call) and path_of(op.func) in _OPS and op.args:
        op = op.args[0]
    name = str(constant(op)).rpartition(".")[2]
    if name != "call_extern" or not isinstance(args, ast.List | ast.Tuple):
        raise source.error(node, f"T.Call of {ast.unparse(op)} has no meaning here")
    return _foreign_call(source, node, given.get("ret_ty", given.get("dtype")), args.elts)


def _undefined(source: Source, node: ast.Call) -> ast.expr:
    """A value that a program may not depend on: zero here."""
    given = _given(source, node, "T.undef(dtype)")
    name = constant(given["dtype"])
    value = False if name == "bool" else 0
    return written(f"T.imm(dtype, {value})", node, dtype=given["dtype"])


def _leading_zeros(source: Source, node: ast.Call) -> ast.expr:
    """TVM counts them in int32."""
    given = _given(source, node, "T.clz(x)")
    return written('T.cast(T.clz(x), "int32")', node, x=given["x"])


def _hypotenuse(source: Source, node: ast.Call) -> ast.expr:
    """The greater one taken out of the root, whose squares could be infinite otherwise."""
    given = _given(source, node, "T.hypot(x1, x2)")
    a, b = (written("T.abs(x)", node, x=given[name]) for name in ("x1", "x2"))
    most = written("T.Select(a < b, b, a)", node, a=a, b=b)
    ratio = written("T.Select(a < b, a, b) / m", node, a=a, b=b, m=most)
    root = written("m * T.sqrt(r * r + 1.0)", node, m=most, r=ratio)
    return written(
        "T.Select(T.isinf(a), a, T.Select(T.isinf(b), b, T.Select(m == 0.0, b, root)))",
        node, a=a, b=b, m=most, root=root,
    )  # fmt: skip


def _fixed_point(source: Source, node: ast.Call) -> ast.expr:
    """``round(x * y * 2 ** (s - q))`` of int32, half up, the product being exact."""
    given = _given(source, node, "T.q_multiply_shift(x, y, q, s, dtype=None)")
    if constant(given.get("dtype")) not in (None, "int32"):
        raise source.error(given["dtype"], "T.q_multiply_shift gives int32")
    bits, shift = constant(given["q"]), constant(given["s"])
    if not isinstance(bits, int) or not isinstance(shift, int) or bits - min(shift, 0) < 1:
        raise source.error(node, "q and s of T.q_multiply_shift are known numbers, q at least 1")
    left, right = max(shift, 0), bits - min(shift, 0)
    return written(
        f'T.cast((T.shift_left(T.cast(x, "int64"), T.int64({left})) * T.cast(y, "int64")'
        f' + T.int64({1 << (right - 1)})) >> T.int64({right}), "int32")',
        node,
        x=given["x"],
        y=given["y"],
    )


def _lane_mask(source: Source, node: ast.Call) -> ast.expr:
    """The lanes whose number is below a limit: ``T.get_active_lane_mask("uint1x4", base, 14)``."""
    given = _given(source, node, "T.get_active_lane_mask(dtype, base, limit)")
    count = str(constant(given["dtype"])).rpartition("x")[2]
    if not count.isdecimal():
        raise source.error(given["dtype"], "the number of lanes must be known: uint1x4")
    return written(
        f"T.Ramp(base, 1, {count}) < T.Broadcast(limit, {count})",
        node,
        base=given["base"],
        limit=given["limit"],
    )


def _of_dtype(source: Source, node: ast.Call) -> ast.expr:
    """Bits of integers of a dtype that is said: those of the operands in it."""
    said = next((k for k in node.keywords if k.arg == "dtype"), None)
    if said is None or not str(constant(said.value)).startswith(("int", "uint")):
        return node
    args = [written("T.cast(x, dtype)", a, x=a, dtype=said.value) for a in node.args]
    return at_place(ast.Call(node.func, args, node.keywords), node)


def _const(source: Source, node: ast.Call) -> ast.expr:
    """``tvm.tir.const(True, "bool")`` is ``T.bool(True)``."""
    given = _given(source, node, "tvm.tir.const(value, dtype)")
    name = constant(given["dtype"])
    if name not in SHORT:
        raise source.error(given["dtype"], f"unknown dtype {name!r}")
    return written(f"T.{name}(value)", node, value=given["value"])


def _meta(source: Source, node: ast.Call) -> ast.expr:
    return copy.deepcopy(_given(source, node, "T.meta_var(value)")["value"])


_RULES: Mapping[str, Callable[[Source, ast.Call], ast.expr]] = {
    "T.call_extern": _extern,
    "T.call_pure_extern": _extern,
    "T.Call": _operation,
    "T.undef": _undefined,
    "T.clz": _leading_zeros,
    "T.hypot": _hypotenuse,
    "T.q_multiply_shift": _fixed_point,
    "T.get_active_lane_mask": _lane_mask,
    "T.meta_var": _meta,
    "I.meta_var": _meta,
    **{
        f"T.{name}": _of_dtype
        for name in ("shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor")
    },
    **{f"tvm.{name}.const": _const for name in ("tir", "tirx")},
}
