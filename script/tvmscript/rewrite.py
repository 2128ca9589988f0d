"""TVMScript's syntax turned into ours, tree to tree: places in the text are kept.

Only spelling differs: ``T.Buffer((n, 4), "float32")`` is ``f32[Buffer, n, 4]``, ``T.match_buffer``
of a handle is a buffer parameter, ``out_sinfo=`` is ``out=``, ``cls.f`` is ``f``, ``n = T.int64()``
and ``"n"`` in a shape are symbols.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from unity.errors import UnityError
from unity.ir.dtype import SHORT_NAMES, dtype
from unity.te import max_value, min_value

from ..parser.source import Source

N = TypeVar("N", bound=ast.AST)
_SHORT: Mapping[str, str] = {long: short for short, long in SHORT_NAMES.items()}
_GREATEST: Mapping[str, float] = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": sys.float_info.max,
    "float8_e5m2": 57344.0,
}
"""The greatest finite value of the floats with infinities: what TVM's ``max_value`` means."""
_DROPPED_ATTRS = frozenset({"global_symbol", "tir.noalias", "tir.is_scheduled"})
_DROPPED_OPTIONS = frozenset(
    {"out_dtype", "out_layout", "sinfo_args", "private", "check_well_formed"}
)
_RENAMED: Mapping[str, str] = {
    "T.sblock": "T.block",
    "T.Select": "T.select",
    "T.if_then_else": "T.select",
    "T.Cast": "T.cast",
    "T.power": "T.pow",
    "T.fabs": "T.abs",
    "T.nearbyint": "T.round",
    "T.thread_binding": "T.thread",
    "T.axis.S": "T.axis.spatial",
    "T.axis.R": "T.axis.reduce",
    "T.axis.scan": "T.axis.opaque",
    "T.bitwise_and": "T.and_",
    "T.bitwise_or": "T.or_",
    "T.bitwise_xor": "T.xor",
    "T.shift_left": "T.shl",
    "T.shift_right": "T.shr",
    "R.prim_value": "R.prim",
    "R.call_dps_packed": "R.call_library",
    "R.Callable": "R.Func",
}


def path_of(node: ast.expr | None) -> str:
    """A dotted name, or the empty string."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            base = path_of(node.value)
            return f"{base}.{node.attr}" if base else ""
        case _:
            return ""


class Rewriter(ast.NodeTransformer):
    """Rewrites the functions of one module.

    Args:
        source: Where they are written, for errors.
        modules: The names that stand for the module itself (``cls``, the class).
    """

    def __init__(self, source: Source, modules: Sequence[str] = ()) -> None:
        self.source = source
        self.modules = set(modules)
        self.symbols: dict[str, None] = {}

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """A function in our syntax, with our decorator."""
        decorator = node.decorator_list[0]
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        kind = path_of(called)
        if kind not in ("T.prim_func", "R.function"):
            raise self.source.error(decorator, f"unknown decorator {kind!r}")
        buffers, attrs, body = self._declarations(node.body)
        for arg in node.args.args:
            if arg.arg in buffers:
                name, annotation = buffers[arg.arg]
                arg.arg, arg.annotation = name, annotation
            elif arg.annotation is not None:
                arg.annotation = self._scalar(arg.annotation) or self.visit(arg.annotation)
        if node.returns is not None:
            node.returns = self.visit(node.returns)
        node.body = self._suite(body) or [_at(ast.Pass(), node)]
        options = [_keyword("attrs", attrs)] if attrs is not None else []
        for option in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if option.arg == "pure":
                options.append(option)
        ours = "script.prim_func" if kind == "T.prim_func" else "script.function"
        call = ast.Call(_dotted(ours), [], list(options))
        node.decorator_list = [_at(call, decorator)]
        return node

    def _declarations(
        self, body: Sequence[ast.stmt]
    ) -> tuple[dict[str, tuple[str, ast.expr]], ast.expr | None, list[ast.stmt]]:
        """Take symbols, matched buffers and attributes off a function's head."""
        buffers: dict[str, tuple[str, ast.expr]] = {}
        attrs: ast.expr | None = None
        rest: list[ast.stmt] = []
        for node in body:
            match node:
                case ast.Assign(targets=[target], value=value) if self._declares(target, value):
                    continue
                case ast.Assign(targets=[ast.Name(name)], value=ast.Call() as call) if (
                    path_of(call.func) == "T.match_buffer"
                ):
                    handle, *layout = call.args
                    buffer = ast.Call(call.func, layout, call.keywords)
                    buffers[path_of(handle)] = (name, self._buffer(_at(buffer, call)))
                case ast.Expr(ast.Call() as call) if path_of(call.func) in (
                    "T.func_attr",
                    "R.func_attr",
                ):
                    attrs = self._attrs(call.args[0])
                case _:
                    rest.append(node)
        return buffers, attrs, rest

    def _declares(self, target: ast.expr, value: ast.expr) -> bool:
        """Whether an assignment makes symbols (``n = T.int64()``) or names the module."""
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        values = value.elts if isinstance(value, ast.Tuple) else [value]
        if path_of(value) in self.modules:
            self.modules.add(path_of(target))
            return True
        if not all(
            isinstance(v, ast.Call)
            and not v.args
            and path_of(v.func) in ("T.int64", "T.int32", "T.Var", "T.SizeVar")
            for v in values
        ):
            return False
        self.symbols.update(dict.fromkeys(path_of(n) for n in names))
        return True

    def _attrs(self, node: ast.expr) -> ast.expr | None:
        """Attributes without those that only TVM reads."""
        if not isinstance(node, ast.Dict):
            raise self.source.error(node, "attributes must be a dict")
        kept = [
            (key, self.visit(value))
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and key.value not in _DROPPED_ATTRS
        ]
        if not kept:
            return None
        return _at(ast.Dict([k for k, _ in kept], [v for _, v in kept]), node)

    def _scalar(self, annotation: ast.expr) -> ast.expr | None:
        """A scalar parameter: ``T.int64`` is a size, ``T.float32`` a scalar."""
        path = path_of(annotation)
        name = path.removeprefix("T.")
        if not path.startswith("T.") or name not in _SHORT:
            return None
        if name in ("int64", "int32"):
            return _at(_dotted("T.size"), annotation)
        return _at(ast.Call(_dotted("T.scalar"), [ast.Constant(name)], []), annotation)

    def _suite(self, nodes: Sequence[ast.stmt], in_block: bool = False) -> list[ast.stmt]:
        """Statements in our syntax; allocations know whether they belong to a block."""
        found: list[ast.stmt] = []
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name() as name], value=ast.Call() as call) if path_of(
                    call.func
                ) in ("T.alloc_buffer", "T.sblock_alloc_buffer"):
                    ours = "T.block_alloc" if in_block else "T.alloc"
                    found.append(_at(ast.Assign([name], self._alloc(call, ours)), node))
                case ast.Assign(targets=[target], value=value) if self._declares(target, value):
                    continue
                case ast.Expr(ast.Call() as call) if path_of(call.func) in (
                    "R.output",
                    "T.block_attr",
                    "T.sblock_attr",
                ):
                    continue
                case ast.With():
                    found.append(self._with(node))
                case ast.For() | ast.While() | ast.If():
                    node.body = self._suite(node.body)
                    node.orelse = self._suite(node.orelse)
                    self._visit_head(node)
                    found.append(node)
                case ast.FunctionDef():
                    found.append(self.function(node))
                case _:
                    found.append(self.visit(node))
        return found

    def _visit_head(self, node: ast.For | ast.While | ast.If) -> None:
        if isinstance(node, ast.For):
            node.iter = self.visit(node.iter)
        else:
            node.test = self.visit(node.test)

    def _with(self, node: ast.With) -> ast.With:
        call = node.items[0].context_expr
        is_block = isinstance(call, ast.Call) and path_of(call.func) in ("T.block", "T.sblock")
        attrs = [
            s.value.args[0]
            for s in node.body
            if isinstance(s, ast.Expr)
            and isinstance(s.value, ast.Call)
            and path_of(s.value.func) in ("T.block_attr", "T.sblock_attr")
        ]
        node.body = self._suite(node.body, is_block) or [_at(ast.Pass(), node)]
        node.items[0].context_expr = self.visit(call)
        kept = self._attrs(attrs[0]) if attrs else None
        opened = node.items[0].context_expr
        if kept is not None and isinstance(opened, ast.Call):
            opened.keywords.append(_keyword("attrs", kept))
        return node

    def _alloc(self, call: ast.Call, ours: str) -> ast.expr:
        given = self._named(call, "shape", "dtype")
        shape = self.visit(given.pop("shape"))
        element = given.pop("dtype", None) or ast.Constant("float32")
        keywords = [_keyword(k, self.visit(given[k])) for k in ("scope", "align") if k in given]
        return _at(ast.Call(_dotted(ours), [shape, element], keywords), call)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """``cls.f`` is ``f``; names with another spelling get ours."""
        if path_of(node.value) in self.modules:
            return _at(ast.Name(node.attr, ast.Load()), node)
        if path_of(node) == "R.Tensor":
            return self._tensor(_at(ast.Call(node, [], []), node))
        renamed = _RENAMED.get(path_of(node))
        return node if renamed is None else _at(_dotted(renamed), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A call in our spelling."""
        path = path_of(node.func)
        rule = _RULES.get(path)
        if rule is not None:
            return rule(self, node)
        name = path.removeprefix("T.")
        if path.startswith("T.") and name in _SHORT and node.args:
            return self._literal(node, name)
        node.func = self.visit(node.func)
        node.args = [self.visit(a) for a in node.args]
        node.keywords = [
            _keyword(_OPTIONS.get(k.arg or "", k.arg or ""), self.visit(k.value))
            for k in node.keywords
            if k.arg not in _DROPPED_OPTIONS
        ]
        return node

    def _named(self, call: ast.Call, *names: str) -> dict[str, ast.expr]:
        given = dict(zip(names, call.args, strict=False))
        given.update({k.arg: k.value for k in call.keywords if k.arg is not None})
        return given

    def _literal(self, node: ast.Call, name: str) -> ast.expr:
        """``T.int64(4)`` is 4, ``T.float32(0.5)`` an immediate, of an expression a cast."""
        value = node.args[0]
        if not isinstance(value, ast.Constant):
            inner = self.visit(value)
            return _at(ast.Call(_dotted("T.cast"), [ast.Constant(name), inner], []), node)
        if dtype(name).is_int or name == "bool":
            return value
        return _at(ast.Call(_dotted("T.imm"), [ast.Constant(name), value], []), node)

    def _dims(self, node: ast.expr) -> list[ast.expr]:
        """The dims of a shape; names in quotes are symbols."""
        if isinstance(node, ast.Call) and path_of(node.func) == "R.shape":
            node = node.args[0]
        if not isinstance(node, ast.Tuple | ast.List):
            raise self.source.error(node, "a shape must be a tuple")
        return [self._dim(part) for part in node.elts]

    def _dim(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                inner: ast.expr = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                raise self.source.error(node, f"not a dim: {node.value!r}") from None
            for part in ast.walk(inner):
                ast.copy_location(part, node)
                if isinstance(part, ast.Name):
                    self.symbols[part.id] = None
            return inner
        made: ast.expr = self.visit(node)
        return made

    def _element(self, node: ast.expr | None) -> ast.expr:
        if node is None:
            return _dotted("R.any_dtype")
        name = node.value if isinstance(node, ast.Constant) else path_of(node).removeprefix("T.")
        if not isinstance(name, str) or name not in _SHORT:
            raise self.source.error(node, f"unknown dtype {name!r}")
        return ast.Name(_SHORT[name], ast.Load())

    def _buffer(self, node: ast.Call) -> ast.expr:
        given = self._named(node, "shape", "dtype")
        parts: list[ast.expr] = self._dims(given["shape"]) or [ast.Tuple([], ast.Load())]
        if "scope" in given:
            parts.append(ast.Call(_dotted("T.scope"), [given["scope"]], []))
        if "strides" in given:
            parts.append(ast.Call(_dotted("T.strides"), self._dims(given["strides"]), []))
        element = self._element(given.get("dtype", ast.Constant("float32")))
        items = ast.Tuple([ast.Name("Buffer", ast.Load()), *parts], ast.Load())
        return _at(ast.Subscript(element, items, ast.Load()), node)

    def _tensor(self, node: ast.Call) -> ast.expr:
        given = self._named(node, "shape", "dtype", "vdevice")
        shape = given.get("shape")
        if isinstance(shape, ast.Constant) and isinstance(shape.value, str):
            given["dtype"], shape = shape, None
        parts: list[ast.expr]
        if shape is not None:
            parts = self._dims(shape) or [ast.Tuple([], ast.Load())]
        elif "ndim" in given:
            parts = [ast.Call(_dotted("R.rank"), [given["ndim"]], [])]
        else:
            parts = [ast.Constant(...)]
        items = ast.Tuple([ast.Name("Tensor", ast.Load()), *parts], ast.Load())
        return _at(ast.Subscript(self._element(given.get("dtype")), items, ast.Load()), node)

    def _shape_type(self, node: ast.Call) -> ast.expr:
        given = self._named(node, "values")
        if "ndim" in given:
            args: list[ast.expr] = [ast.Call(_dotted("R.rank"), [given["ndim"]], [])]
        elif "values" in given:
            args = self._dims(given["values"])
        else:
            args = [ast.Constant(...)]
        return _at(ast.Call(node.func, args, []), node)

    def _shape(self, node: ast.Call) -> ast.expr:
        return _at(ast.Call(node.func, self._dims(node.args[0]), []), node)

    def _prim_type(self, node: ast.Call) -> ast.expr:
        given = self._named(node, "dtype")
        args: list[ast.expr] = [given.get("dtype", ast.Constant("int64"))]
        if "value" in given:
            args.append(self._dim(given["value"]))
        return _at(ast.Call(node.func, args, []), node)

    def _tuple(self, node: ast.Call) -> ast.expr:
        return _at(ast.Tuple([self.visit(a) for a in node.args], ast.Load()), node)

    def _tuple_type(self, node: ast.Call) -> ast.expr:
        return _at(ast.Call(node.func, [self.visit(a) for a in node.args], []), node)

    def _call_tir(self, node: ast.Call) -> ast.expr:
        given = self._named(node, "callee", "args", "out", "sym_args")
        if "out_sinfo" in given:
            given["out"] = given.pop("out_sinfo")
        for name in ("callee", "args", "out"):
            if name not in given:
                raise self.source.error(node, f"R.call_tir needs {name!r}")
        keywords = [_keyword("out", self.visit(given["out"]))]
        sizes = given.get("tir_vars", given.get("sym_args"))
        if sizes is not None:
            dims = ast.Tuple(self._dims(sizes), ast.Load())
            keywords.append(_keyword("sym_args", _at(dims, sizes)))
        args = [self.visit(given["callee"]), self.visit(given["args"])]
        return _at(ast.Call(node.func, args, keywords), node)

    def _spliced(self, node: ast.Call) -> ast.expr:
        """``T.reads([a, b])`` is ``T.reads(a, b)``."""
        args = node.args[0].elts if node.args and isinstance(node.args[0], ast.List) else node.args
        return _at(ast.Call(node.func, [self.visit(a) for a in args], []), node)

    def _thread(self, node: ast.Call) -> ast.expr:
        given = self._named(node)
        args = [self.visit(a) for a in node.args]
        if "thread" in given:
            args.append(given["thread"])
        return _at(ast.Call(_dotted("T.thread"), args, []), node)

    def _value_cast(self, node: ast.Call) -> ast.expr:
        """``T.cast(value, "float32")`` has its dtype last."""
        first, second = (self.visit(a) for a in node.args)
        if isinstance(second, ast.Constant) and isinstance(second.value, str):
            first, second = second, first
        return _at(ast.Call(_dotted("T.cast"), [first, second], []), node)

    def _extreme(self, node: ast.Call) -> ast.expr:
        """``T.min_value("float32")`` and ``T.max_value``."""
        element = node.args[0]
        name = element.value if isinstance(element, ast.Constant) else ""
        try:
            kind = dtype(str(name))
        except UnityError as error:
            raise self.source.error(element, error.message, error.hint) from None
        least = path_of(node.func) == "T.min_value"
        finite = _GREATEST.get(kind.name)
        bound = (min_value if least else max_value)(kind).value
        if finite is not None:
            bound = -finite if least else finite
        value = ast.Constant(bound)
        return _at(ast.Call(_dotted("T.imm"), [element, value], []), node)


_OPTIONS: Mapping[str, str] = {"out_sinfo": "out", "annotations": "attrs"}
_RULES: Mapping[str, Callable[[Rewriter, ast.Call], ast.expr]] = {
    "T.Buffer": Rewriter._buffer,
    "T.reads": Rewriter._spliced,
    "T.writes": Rewriter._spliced,
    "T.thread_binding": Rewriter._thread,
    "T.cast": Rewriter._value_cast,
    "T.min_value": Rewriter._extreme,
    "T.max_value": Rewriter._extreme,
    "R.Tensor": Rewriter._tensor,
    "R.Shape": Rewriter._shape_type,
    "R.shape": Rewriter._shape,
    "R.Prim": Rewriter._prim_type,
    "R.Tuple": Rewriter._tuple_type,
    "R.tuple": Rewriter._tuple,
    "R.call_tir": Rewriter._call_tir,
}


def _keyword(name: str, value: ast.expr) -> ast.keyword:
    return ast.copy_location(ast.keyword(name, value), value)


def _dotted(path: str) -> ast.expr:
    first, *rest = path.split(".")
    found: ast.expr = ast.Name(first, ast.Load())
    for part in rest:
        found = ast.Attribute(found, part, ast.Load())
    return found


def _at(node: N, like: ast.AST) -> N:
    """The node and what was made for it, at the place of another."""
    for part in ast.walk(node):
        if isinstance(part, ast.expr | ast.stmt | ast.keyword) and not hasattr(part, "lineno"):
            ast.copy_location(part, like)
    return node
