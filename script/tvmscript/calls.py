"""Calls of TVMScript in our spelling: types, buffers, operators, scalar functions.

What each takes is in `signatures`; what Unity lacks is refused there by name.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence

from unity.arguments import Bound, Named
from unity.errors import UnityError
from unity.ir.dtype import dtype
from unity.op.table import OPS
from unity.te import max_value, min_value

from ..parser.source import Source
from .attributes import constant_of, unwrap_attributes, unwrapped
from .foreign import Foreign, is_of
from .graph.before import Naming
from .graph.composed import COMPOSED, composed
from .graph.devices import check_device, check_here
from .graph.index_maps import layout_transform
from .graph.layouts import LAID_OUT, in_our_layout
from .graph.results import result_of
from .graph.storage import STORED, stored
from .packed import PACKED, Externs
from .signatures import FOREIGN
from .spellings import OPERATIONS, RENAMED, SHORT
from .syntax import at_place, constant, dotted, keyword, path_of, said
from .types import TypeRewriter
from .views import whole_of

OPERATORS = "relax.op."
"""What TVM's builders call what is ``R.`` in scripts."""
_GREATEST: Mapping[str, float] = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": sys.float_info.max,
    "float8_e5m2": 57344.0,
}
"""The greatest finite value of the floats with infinities: what TVM's ``max_value`` means."""
_LAYOUTS = ("data_layout", "layout")
_ABSENT = ("", "void", None)
"""What ``out_dtype`` and ``out_layout`` are where a program leaves them open."""


class CallRewriter(TypeRewriter, ast.NodeTransformer):
    """Rewrites expressions.

    Args:
        source: Where they are written, for errors.
        modules: The names that stand for the module itself (``cls``, the class).
    """

    def __init__(self, source: Source, modules: Sequence[str] = ()) -> None:
        super().__init__(source)
        self.modules = set(modules)
        self.numbers: frozenset[str] = frozenset()
        """Integer parameters that are no sizes."""
        self.externs = Externs(source)
        self.in_ours = False
        """Whether names of memory are ours."""
        self.before = Naming()
        """What stands before the statement that is rewritten."""
        self.in_graph = False
        """Whether a graph function is read: scalars are Python's there."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """``cls.f`` is ``f``; names with another spelling get ours."""
        check_here(self.source, node, path_of(node))
        if path_of(node.value) in self.modules:
            return at_place(ast.Name(node.attr, ast.Load()), node)
        if path_of(node) in ("R.Tensor", "R.Shape", "R.Tuple"):
            return self.visit_Call(at_place(ast.Call(node, [], []), node))
        if isinstance(node.value, ast.Name) and node.value.id in self.buffers:
            found = self.of_memory(node, node.value.id)
            if found is not None:
                return found
        if self.in_graph and node.attr in ("ty", "struct_info") and path_of(node.value):
            return at_place(ast.Attribute(node.value, "type", ast.Load()), node)
        renamed = RENAMED.get(path_of(node))
        return node if renamed is None else at_place(dotted(renamed), node)

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        """``assert x, ("ValueError", ["a ", "b"])`` says the texts; ours is a `UnityError`."""
        match node.msg:
            case ast.Tuple([ast.Constant(), ast.List(parts)]) if all(
                isinstance(p, ast.Constant) and isinstance(p.value, str) for p in parts
            ):
                text = "".join(str(constant(p)) for p in parts)
                node.msg = at_place(ast.Constant(text), node.msg)
            case _:
                pass
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A call in our spelling."""
        path = path_of(node.func)
        if isinstance(node.func, ast.Attribute) and path not in FOREIGN:
            scalar = self._scalar_call(node, node.func)
            if scalar is not None:
                return self._again(scalar)
        if path.startswith(OPERATORS):
            path = f"R.{path.removeprefix(OPERATORS)}"
            node.func = at_place(dotted(path), node.func)
        if path in ("T.load", "T.store") and path_of(node.args[0]) in self.views:
            return self.masked(node)
        check_here(self.source, node, path)
        rule = _RULES.get(path)
        if rule is not None:
            return rule(self, node, self._bound(node))
        if path in PACKED:
            return self._packed(node)
        if path in STORED and not self.in_ours:
            return self._in_memory(node)
        if path in COMPOSED:
            return self._again(composed(self.source, node, COMPOSED[path], self.before))
        if path in LAID_OUT:
            turned = in_our_layout(self.source, node, LAID_OUT[path], self.before)
            if turned is not node:
                return self._again(turned)
        if path in FOREIGN:
            return self._foreign(node, FOREIGN[path])
        if path.startswith("R.memory.") and not self.in_ours:
            raise self.source.error(node, f"{path} is not the same in TVM and in Unity")
        name = path.removeprefix("T.")
        if path.startswith("T.") and name in SHORT and node.args:
            return self._literal(node, name)
        row = OPS.get(path.removeprefix("R.")) if path.startswith("R.") else None
        if row is not None:
            unwrap_attributes(node, row)
        node.func = self.visit(node.func)
        node.args = [self.visit(a) for a in node.args]
        layouts = [k.value for k in node.keywords if k.arg in _LAYOUTS]
        node.keywords = [
            ast.copy_location(ast.keyword(k.arg, self.visit(k.value)), k)
            for k in node.keywords
            if not self._leaves_open(k, layouts)
        ]
        return node

    def _again(self, made: ast.expr) -> ast.expr:
        """What was put in place of a call, with its own parts in our spelling."""
        found: ast.expr = self.visit(made)
        return found

    def _in_memory(self, node: ast.Call) -> ast.expr:
        """A call that manages memory: names of ours among TVM's must not be read as TVM's."""
        made = stored(self.source, node)
        self.in_ours = isinstance(made, ast.Call) and path_of(made.func).startswith("R.memory.")
        try:
            return self._again(made)
        finally:
            self.in_ours = False

    def _packed(self, node: ast.Call) -> ast.expr:
        """A call of a function that is looked up by name."""
        call, kind = self.externs.call(node)
        call.args = [self.visit(a) for a in call.args]
        if kind is None:
            return call
        asserted = ast.Call(dotted("R.match_cast"), [call, self.visit(kind)], [])
        return at_place(asserted, node)

    def _scalar_call(self, node: ast.Call, func: ast.Attribute) -> ast.expr | None:
        """Scalars' methods and constructors in terms of operators; None for other calls."""
        made = self._as_operators(node, func)
        for given in node.keywords if made is not None else ():
            if given.arg != "span" or said(given.value):
                raise self.source.error(given, f"{func.attr} has no parameter {given.arg!r}")
        return made

    def _as_operators(self, node: ast.Call, func: ast.Attribute) -> ast.expr | None:
        path = path_of(func)
        match node.args:
            case [kind] if func.attr == "astype" and not path.startswith(("T.", "R.")):
                cast = "R.astype" if self.in_graph else "T.cast"
                return at_place(ast.Call(dotted(cast), [func.value, kind], []), node)
            case [] if path in ("R.Any", "R.Object"):
                return func
            case [value] if path in ("T.meta_var", "I.meta_var"):
                return value
            case [a, b] if path in OPERATIONS:
                return at_place(ast.BinOp(a, OPERATIONS[path](), b), node)
            case [a, b] if path == "T.ceildiv":
                whole = ast.BinOp(ast.BinOp(a, ast.Add(), b), ast.Sub(), ast.Constant(1))
                return at_place(ast.BinOp(whole, ast.FloorDiv(), b), node)
            case [a, b] if path in ("T.max", "T.min") and self.in_graph:
                return at_place(ast.Call(dotted(func.attr), [a, b], []), node)
            case [ast.Constant(str(kind)), value] if path in ("T.IntImm", "T.FloatImm"):
                return at_place(ast.Call(dotted(f"T.{kind}"), [value], []), node)
            case _:
                return None

    def _leaves_open(self, keyword: ast.keyword, layouts: Sequence[ast.expr]) -> bool:
        """Whether a keyword says what holds without it: no other dtype, no other layout."""
        if keyword.arg not in ("out_dtype", "out_layout"):
            return False
        value = constant(keyword.value)
        if value in _ABSENT:
            return True
        if keyword.arg == "out_dtype":
            return False
        if any(constant(layout) == value for layout in layouts):
            return True
        raise self.source.error(
            keyword,
            f"the result has the layout of the input here, not {value!r}",
            "say the same layout twice, and turn the result by R.permute_dims",
        )

    def _bound(self, call: ast.Call) -> Bound[ast.expr]:
        """What a call of TVM's is given; what Unity lacks must change nothing.

        Raises:
            UnityError: It doesn't fit TVM's signature, or says what Unity can't do.
        """
        row = FOREIGN[path_of(call.func)]
        named = [Named(k.arg, k.value, self.source.span(k)) for k in call.keywords]
        bound = row.signature.bind(call.args, named, self.source.span(call))
        kept: dict[str, ast.expr] = {}
        for name, value in bound.named.items():
            same = row.same.get(name)
            if same is None:
                kept[name] = value
            elif isinstance(same, str):
                if not is_of(same, constant(value)):
                    raise self.source.error(
                        value,
                        f"{row.signature.name}, argument {name!r}: expected {same}, "
                        f"got {ast.unparse(value)}",
                    )
            elif (
                isinstance(same, tuple)
                and not _is_one_of(same, value)
                and not self._free(name, value)
            ):
                raise self.source.error(
                    value,
                    f"Unity has no {name}={ast.unparse(value)} for {row.signature.name}",
                    f"leave {name!r} out",
                )
        return Bound(kept, bound.rest)

    def _free(self, name: str, value: ast.expr) -> bool:
        """Whether it is an offset that a program takes as it comes: ours are part of the address.

        Where the program computes with it, its symbol is bound nowhere, which is an error.
        """
        return name == "elem_offset" and isinstance(value, ast.Name) and value.id in self.symbols

    def _foreign(self, node: ast.Call, row: Foreign) -> ast.expr:
        """A call of TVM's by our names."""
        bound = self._bound(node)
        path = path_of(node.func)
        op = OPS.get(path.removeprefix("R."))
        attributes = () if op is None else [p.name for p in op.params if p.kind == "attr"]
        given: dict[str, ast.expr] = {}
        for name, value in bound.named.items():
            is_attribute = row.ours.get(name, name) in attributes
            given[name] = self.visit(unwrapped(value) if is_attribute else constant_of(value))
        keywords = [
            keyword(row.ours.get(name, name), value)
            for name, value in given.items()
            if not (name == "out_dtype" and constant(value) in _ABSENT)
        ]
        keywords += [
            keyword(name, ast.copy_location(ast.Constant(value), node))
            for name, value in row.says.items()
            if name not in bound.named
        ]
        args = [self.visit(a) for a in bound.rest]
        call = at_place(ast.Call(self.visit(node.func), args, keywords), node)
        params = [p.name for p in row.signature.params]
        said_all = {**dict(zip(params, node.args, strict=False)), **_by_name(node)}
        return result_of(self.source, path, call, {**said_all, **given}, self.before)

    def _literal(self, node: ast.Call, name: str) -> ast.expr:
        """``T.int64(4)`` is 4, ``T.float32(0.5)`` an immediate, of an expression a cast."""
        value = node.args[0]
        for more in (*node.args[1:], *(k for k in node.keywords if k.arg != "is_size_var")):
            what = more.arg if isinstance(more, ast.keyword) else ast.unparse(more)
            raise self.source.error(more, f"T.{name} takes one value, got {what!r} as well")
        if self.in_graph:
            return self._number(node, value)
        if not isinstance(value, ast.Constant):
            inner = self.visit(value)
            return at_place(ast.Call(dotted("T.cast"), [ast.Constant(name), inner], []), node)
        if dtype(name).is_int or name == "bool":
            return value
        return at_place(ast.Call(dotted("T.imm"), [ast.Constant(name), value], []), node)

    def _number(self, node: ast.Call, value: ast.expr) -> ast.expr:
        """``T.float32(0.5)`` is 0.5 in a graph function, ``T.float64("inf")`` infinite."""
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            try:
                return at_place(ast.Constant(float(value.value)), node)
            except ValueError:
                raise self.source.error(value, f"not a number: {value.value!r}") from None
        found: ast.expr = self.visit(value)
        return found

    def _call_tir(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        given = bound.named
        out = [given[name] for name in ("out_sinfo", "out_ty", "out") if name in given]
        if len(out) != 1:
            raise self.source.error(node, "R.call_tir needs 'out_sinfo'")
        keywords = [keyword("out", self.visit(out[0]))]
        sizes = given.get("tir_vars", given.get("sym_args"))
        if sizes is not None:
            dims = ast.Tuple(self._dims(sizes), ast.Load())
            keywords.append(keyword("sym_args", at_place(dims, sizes)))
        args = [self.visit(given["callee"]), self.visit(given["args"])]
        return at_place(ast.Call(node.func, args, keywords), node)

    def _call_tir_inplace(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        """``inplace_indices`` says of each output which argument it lies in, as `inplace` does."""
        places = keyword("inplace", self.visit(bound.named["inplace_indices"]))
        node.func = at_place(dotted("R.call_tir"), node.func)
        call = self._call_tir(node, bound)
        assert isinstance(call, ast.Call)
        call.keywords.append(places)
        return call

    def _spliced(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        """``T.reads([a, b])`` is ``T.reads(a, b)``."""
        args = bound.rest
        if len(args) == 1 and isinstance(args[0], ast.List):
            args = tuple(args[0].elts)
        whole = [
            whole_of(a, self.views[a.id]) if isinstance(a, ast.Name) and a.id in self.views else a
            for a in args
        ]
        return at_place(ast.Call(node.func, [self.visit(a) for a in whole], []), node)

    def _to_vdevice(self, _node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        """On a CPU a tensor is where it is wanted."""
        check_device(self.source, bound.named["dst_vdevice"], self.devices)
        return self._again(bound.named["data"])

    def _assert_op(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        """``R.assert_op(n > 2, [n], format="got {}")``: ours takes the values one by one."""
        given = bound.named
        values = given.get("format_args", ast.Constant(None))
        parts = values.elts if isinstance(values, ast.List | ast.Tuple) else [values]
        args = [self.visit(v) for v in (given["condition"], *(p for p in parts if said(p)))]
        text = [keyword("format", given["format"])] if "format" in given else []
        return at_place(ast.Call(node.func, args, text), node)

    def _layout_transform(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        return layout_transform(self.source, node, bound, self.before)

    def _remap(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        """``T.axis.remap("SR", [i, k])`` is ``T.axis.remap("SR", i, k)``."""
        loops = bound.named["bindings"]
        parts = loops.elts if isinstance(loops, ast.List | ast.Tuple) else [loops]
        args = [bound.named["kinds"], *(self.visit(a) for a in parts)]
        return at_place(ast.Call(node.func, args, []), node)

    def _thread(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        given = bound.named
        if "thread" not in given:
            raise self.source.error(node, "T.thread_binding needs 'thread'")
        args = [self.visit(given[k]) for k in ("start", "stop", "thread") if k in given]
        said = [given["annotations"]] if "annotations" in given else []
        marks = [keyword("attrs", self.visit(node)) for node in said]
        return at_place(ast.Call(dotted("T.thread"), args, marks), node)

    def _value_cast(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        """``T.cast(value, "float32")`` has its dtype last."""
        first, second = self.visit(bound.named["dtype"]), self.visit(bound.named["value"])
        if isinstance(second, ast.Constant) and isinstance(second.value, str):
            first, second = second, first
        return at_place(ast.Call(dotted("T.cast"), [first, second], []), node)

    def _extreme(self, node: ast.Call, bound: Bound[ast.expr]) -> ast.expr:
        """``T.min_value("float32")`` and ``T.max_value``."""
        element = bound.named["dtype"]
        name = element.value if isinstance(element, ast.Constant) else ""
        try:
            kind = dtype(str(name))
        except UnityError as error:
            raise self.source.error(element, error.message, error.hint) from None
        least = path_of(node.func) == "T.min_value"
        finite = _GREATEST.get(kind.name)
        edge = (min_value if least else max_value)(kind).value
        if finite is not None:
            edge = -finite if least else finite
        value = ast.Constant(edge)
        return at_place(ast.Call(dotted("T.imm"), [element, value], []), node)


def _by_name(node: ast.Call) -> dict[str, ast.expr]:
    return {k.arg: k.value for k in node.keywords if k.arg is not None}


def _is_one_of(same: tuple[object, ...], value: ast.expr) -> bool:
    found = constant(value)
    return any(type(found) is type(known) and found == known for known in same)


_RULES: Mapping[str, Callable[[CallRewriter, ast.Call, Bound[ast.expr]], ast.expr]] = {
    "T.axis.remap": CallRewriter._remap,
    "T.Buffer": CallRewriter._buffer,
    "T.reads": CallRewriter._spliced,
    "T.writes": CallRewriter._spliced,
    "T.thread_binding": CallRewriter._thread,
    "T.cast": CallRewriter._value_cast,
    "T.min_value": CallRewriter._extreme,
    "T.max_value": CallRewriter._extreme,
    "R.assert_op": CallRewriter._assert_op,
    "R.to_vdevice": CallRewriter._to_vdevice,
    "R.layout_transform": CallRewriter._layout_transform,
    "R.Tensor": CallRewriter._tensor,
    "R.Shape": CallRewriter._shape_type,
    "R.shape": CallRewriter._shape,
    "R.Prim": CallRewriter._prim_type,
    "R.Tuple": CallRewriter._tuple_type,
    "R.tuple": CallRewriter._tuple,
    "R.call_tir": CallRewriter._call_tir,
    "R.call_tir_inplace": CallRewriter._call_tir_inplace,
}
