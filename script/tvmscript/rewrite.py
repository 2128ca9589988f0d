"""TVMScript's syntax turned into ours, tree to tree: places in the text are kept.

Only spelling differs: ``T.Buffer((n, 4), "float32")`` is ``f32[Buffer, n, 4]``, ``T.match_buffer``
of a handle is a buffer parameter, ``out_sinfo=`` is ``out=``, ``cls.f`` is ``f``, ``n = T.int64()``
and ``"n"`` in a shape are symbols.
"""

from __future__ import annotations

import ast
import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeGuard

from ..parser.source import Source
from .calls import CallRewriter
from .graph.devices import check_here
from .graph.outputs import check_seen
from .graph.storage import check_killed
from .handles import without_handles
from .options import only_tvms, options_of
from .plain import in_plain_words
from .returned import names_in_shapes, result_as_parameter
from .signatures import FOREIGN
from .spellings import SHORT
from .syntax import at_place, constant, dotted, keyword, path_of, said, written
from .views import Declared, MemoryView, flat_index, names_of, plus, region_view

SIZES = ("T.int64", "T.int32")
"""Scalars that are sizes here."""
_CPU_TARGETS = ("llvm", "c", "test")
_TARGETS = ("T.target", "tvm.target.Target")
_ADDRESSES = "buffer_allocated_addr"
_OF_ALLOCATIONS = ("buffer_data_alignment", _ADDRESSES)
_BLOCK_ATTRS = ("T.block_attr", "T.sblock_attr")


class Rewriter(CallRewriter):
    """Rewrites the functions of one module."""

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """A function in our syntax, with our decorator."""
        decorator = node.decorator_list[0]
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        kind = path_of(called)
        check_here(self.source, decorator, kind)
        if kind not in ("T.prim_func", "R.function"):
            raise self.source.error(decorator, f"unknown decorator {kind!r}")
        self.in_graph = kind == "R.function"
        self.before.note(node)
        self.buffers, self.views, self.numbers = {}, {}, frozenset()
        if not self.in_graph:
            in_plain_words(self.source, node)
            without_handles(self.source, node)
            names = {a.arg for a in node.args.args if path_of(a.annotation) in SIZES}
            if result_as_parameter(self.source, node, SHORT):
                self.numbers = frozenset(names - names_in_shapes(node))
            self.symbols.update(dict.fromkeys(sorted(names - self.numbers)))
        buffers, attrs, body = self._declarations(node.body)
        for arg in node.args.args:
            if arg.arg in buffers:
                name, annotation = buffers[arg.arg]
                arg.arg, arg.annotation = name, annotation
            elif arg.annotation is not None:
                self._note(arg.arg, arg.annotation)
                arg.annotation = self._scalar(arg) or self.visit(arg.annotation)
        if path_of(node.returns) == "R.Tuple":
            node.returns = None  # some tuple: what the body returns says which
        if node.returns is not None:
            node.returns = self.visit(node.returns)
        node.body = self._suite(body) or [at_place(ast.Pass(), node)]
        given = options_of(self.source, decorator, kind)
        if "private" in given and constant(given["private"].value):
            attrs = _with_private(attrs, given["private"])
        options = [keyword("attrs", attrs)] if attrs is not None else []
        if "pure" in given:
            options.append(given["pure"])
        ours = "script.prim_func" if kind == "T.prim_func" else "script.function"
        call = ast.Call(dotted(ours), [], list(options))
        node.decorator_list = [at_place(call, decorator)]
        return node

    def _declarations(
        self, body: Sequence[ast.stmt]
    ) -> tuple[dict[str, tuple[str, ast.expr]], ast.expr | None, list[ast.stmt]]:
        """Take symbols, matched buffers and attributes off a function's head."""
        buffers: dict[str, tuple[str, ast.expr]] = {}
        attrs: ast.expr | None = None
        rest: list[ast.stmt] = []
        for node in self._parted(body):
            match node:
                case ast.Assign(targets=[target], value=value) if self._declares(target, value):
                    continue
                case ast.Assign(targets=[ast.Name(name)], value=ast.Call() as call) if path_of(
                    call.func
                ) == "T.match_buffer" and not _of_region(call):
                    given = self._bound(call).named
                    self._note(name, call)
                    buffers[path_of(given["param"])] = (name, self._buffer_of(call, given))
                case ast.Expr(ast.Call() as call) if path_of(call.func) in (
                    "T.func_attr",
                    "R.func_attr",
                ):
                    attrs = self._attrs(self._bound(call).named["attrs"])
                case _:
                    rest.append(node)
        return buffers, attrs, rest

    def _parted(self, nodes: Iterable[ast.stmt]) -> list[ast.stmt]:
        """Statements, ``n, c = T.int64(), 4`` as two: a symbol is no value beside one."""
        found: list[ast.stmt] = []
        for node in nodes:
            match node:
                case ast.Assign([ast.Tuple(names)], ast.Tuple(values)) if len(names) == len(
                    values
                ) and any(isinstance(v, ast.Call) and self._makes_symbol(v) for v in values):
                    for name, value in zip(names, values, strict=True):
                        found.append(at_place(ast.Assign([name], value), node))
                case _:
                    found.append(node)
        return found

    def _declares(self, target: ast.expr, value: ast.expr) -> bool:
        """Whether an assignment makes symbols (``n = T.int64()``) or names the module."""
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        values = value.elts if isinstance(value, ast.Tuple) else [value]
        if path_of(value) in self.modules:
            self.modules.add(path_of(target))
            return True
        if not values or not all(isinstance(v, ast.Call) and self._makes_symbol(v) for v in values):
            return False
        self.symbols.update(dict.fromkeys(path_of(n) for n in names))
        return True

    def _makes_symbol(self, call: ast.Call) -> bool:
        """Whether it is ``T.int64()``, ``T.var("int32")``, ``T.Var("n", "int64")``.

        Raises:
            UnityError: It is a variable of something else than a size.
        """
        path = path_of(call.func)
        if path in SIZES:
            if not call.args:
                self._refuse_keywords(call, ("is_size_var",))
            return not call.args
        if path not in ("T.var", "T.Var", "T.SizeVar"):
            return False
        self._refuse_keywords(call, ("name", "dtype", "span"))
        kinds = [a.value for a in call.args if isinstance(a, ast.Constant)]
        if kinds and kinds[-1] not in ("int32", "int64", "n") and len(kinds) == len(call.args):
            raise self.source.error(call, f"a variable is a size, got {kinds[-1]!r}")
        return True

    def _refuse_keywords(self, call: ast.Call, known: Sequence[str]) -> None:
        for given in call.keywords:
            if given.arg not in known:
                raise self.source.error(
                    given, f"{path_of(call.func)} has no parameter {given.arg!r}"
                )

    def _attrs(self, node: ast.expr) -> ast.expr | None:
        """Attributes without those that only TVM reads."""
        if not isinstance(node, ast.Dict):
            raise self.source.error(node, "attributes must be a dict")
        kept: list[tuple[ast.expr, ast.expr]] = []
        for key, value in zip(node.keys, node.values, strict=True):
            if not isinstance(key, ast.Constant):
                raise self.source.error(key or value, "the keys of attributes are texts")
            if not only_tvms(self.source, key, value):
                kept.append((key, self._target(value) or self.attribute(value)))
        if not kept:
            return None
        return at_place(ast.Dict([k for k, _ in kept], [v for _, v in kept]), node)

    def _target(self, value: ast.expr) -> ast.expr | None:
        """``T.target("llvm -mcpu=skylake")`` in attributes: its text, if it is a cpu's."""
        if not isinstance(value, ast.Call) or path_of(value.func) not in _TARGETS:
            return None
        said = constant(value.args[0]) if value.args else None
        for host in (*value.args[1:], *(k.value for k in value.keywords)):
            if str(constant(host)).partition(" ")[0] not in _CPU_TARGETS:
                raise self.source.error(host, f"Unity has no host {ast.unparse(host)}")
        kind = said.get("kind") if isinstance(said, dict) else str(said).partition(" ")[0]
        if kind not in _CPU_TARGETS:
            raise self.source.error(value, f"Unity has no target {kind!r}", "it compiles for cpus")
        return at_place(ast.Constant(said if isinstance(said, str) else json.dumps(said)), value)

    def _scalar(self, arg: ast.arg) -> ast.expr | None:
        """A scalar parameter: ``T.int64`` is a size, ``T.float32`` a scalar.

        Of a function that returns a value, integers that are no extents are numbers, too.
        """
        annotation = arg.annotation
        assert annotation is not None
        path = path_of(annotation)
        name = path.removeprefix("T.")
        if not path.startswith("T.") or name not in SHORT:
            return None
        if name in ("int64", "int32") and arg.arg not in self.numbers:
            return at_place(dotted("T.size"), annotation)
        return at_place(ast.Call(dotted("T.scalar"), [ast.Constant(name)], []), annotation)

    def _suite(self, nodes: Sequence[ast.stmt], in_block: bool = False) -> list[ast.stmt]:
        """Statements in our syntax; allocations know whether they belong to a block."""
        found: list[ast.stmt] = []
        outer = dict(self.views)
        nodes = self._parted(nodes)
        for k, node in enumerate(nodes):
            self._check_hidden(node)
            check_killed(self.source, node, nodes[k + 1 :])
            begin = len(found)
            match node:
                case ast.Assign(targets=[ast.Name(view)], value=ast.Call() as call) if (
                    self._names_a_view(view, call)
                ):
                    continue
                case ast.Assign(targets=[ast.Name() as name], value=ast.Call() as call) if path_of(
                    call.func
                ) in ("T.alloc_buffer", "T.sblock_alloc_buffer", "T.decl_buffer"):
                    ours = "T.block_alloc" if in_block else "T.alloc"
                    self._note(name.id, call)
                    found.append(at_place(ast.Assign([name], self._alloc(call, ours)), node))
                case ast.Assign(targets=[target], value=value) if self._declares(target, value):
                    continue
                case ast.Expr(ast.Call() as call) if path_of(call.func) == "R.output":
                    self._check_outputs(call, nodes)
                case ast.Expr(ast.Call() as call) if path_of(call.func) in _BLOCK_ATTRS:
                    if not in_block:
                        raise self.source.error(call, "attributes of a block stand in a block")
                case ast.With():
                    if _is_dataflow(node):
                        check_seen(self.source, node, nodes[k + 1 :])
                    found.append(self._with(node))
                    last = node.body[-1]
                    if isinstance(last, ast.Return) and self.in_graph:
                        node.body = node.body[:-1] or [at_place(ast.Pass(), node)]
                        found.append(last)
                case ast.For() | ast.While() | ast.If():
                    node.body = self._suite(node.body)
                    node.orelse = self._suite(node.orelse)
                    self._visit_head(node)
                    found.append(node)
                case ast.FunctionDef():
                    found.append(self.function(node))
                case _:
                    found.append(self.visit(node))
            found[begin:begin] = self._made_before()
        self.views = outer
        return found

    def _made_before(self) -> list[ast.stmt]:
        """The statements that belong before the last one, in our spelling."""
        found: list[ast.stmt] = []
        for node, ours in self.before.take():
            made: ast.stmt = node if ours else self.visit(node)
            found += [*self._made_before(), made]
        return found

    def _check_outputs(self, call: ast.Call, nodes: Sequence[ast.stmt]) -> None:
        """``R.output`` names what the block binds."""
        bound = {n.id for s in nodes for n in ast.walk(s) if _is_bound(n)}
        for given in (*call.args, *call.keywords):
            if not isinstance(given, ast.Name) or given.id not in bound:
                raise self.source.error(
                    given, f"R.output takes variables of its block, got {ast.unparse(given)}"
                )

    def _check_hidden(self, node: ast.stmt) -> None:
        """Refuse to hide a name that a view begins at."""
        match node:
            case ast.For(target=target):
                targets = [target]
            case ast.Assign(targets=targets):
                pass
            case _:
                return
        parts = [p for t in targets for p in (t.elts if isinstance(t, ast.Tuple) else [t])]
        bound = {p.id for p in parts if isinstance(p, ast.Name)}
        for name, view in self.views.items():
            if hidden := bound & names_of(view):
                raise self.source.error(
                    node, f"{name!r} depends on {min(hidden)!r}, which is bound anew", "rename it"
                )

    def _visit_head(self, node: ast.For | ast.While | ast.If) -> None:
        if isinstance(node, ast.For):
            node.iter = self.visit(node.iter)
        else:
            node.test = self.visit(node.test)

    def _with(self, node: ast.With) -> ast.With:
        call = node.items[0].context_expr
        is_block = isinstance(call, ast.Call) and path_of(call.func) in ("T.block", "T.sblock")
        attrs = [
            self._bound(s.value).named["attrs"]
            for s in node.body
            if isinstance(s, ast.Expr)
            and isinstance(s.value, ast.Call)
            and path_of(s.value.func) in _BLOCK_ATTRS
        ]
        if len(attrs) > 1:
            raise self.source.error(attrs[1], "a block has its attributes in one dict")
        node.body = self._suite(node.body, is_block) or [at_place(ast.Pass(), node)]
        node.items[0].context_expr = self.visit(call)
        kept = self._attrs(attrs[0]) if attrs else None
        opened = node.items[0].context_expr
        if kept is not None and isinstance(opened, ast.Call):
            opened.keywords.append(keyword("attrs", kept))
        return node

    def _note(self, name: str, declaration: ast.expr) -> None:
        """Know a buffer's shape, for views of it."""
        if not isinstance(declaration, ast.Call) or path_of(declaration.func) not in FOREIGN:
            return
        given = self._bound(declaration).named
        shape = given.get("shape")
        if shape is None or not (self._is_dim(shape) or isinstance(shape, ast.Tuple | ast.List)):
            return
        self.buffers[name] = Declared(
            constant(given.get("dtype", ast.Constant("float32"))),
            tuple(self._extents(copy.deepcopy(shape))),
            not said(given.get("strides")) or constant(given.get("strides")) in ([], ()),
        )

    def _names_a_view(self, name: str, call: ast.Call) -> bool:
        """Whether an assignment names a part of a buffer, or its memory in another shape."""
        path = path_of(call.func)
        if path == "T.match_buffer" and _of_region(call):
            given = self._bound(call).named
            region: ast.expr = self.visit(given["param"])
            known = self._viewed(
                call, region.value if isinstance(region, ast.Subscript) else region, given
            )
            assert isinstance(region, ast.Subscript)
            shape = given.get("shape")
            extents = None if shape is None else self._extents(shape)
            view = region_view(self.source, region, known.shape, extents)
            self.views[name] = view
            self.buffers[name] = Declared(known.dtype, view.shape, packed=False)
            return True
        call = self._declared_view(call)
        path = path_of(call.func)
        data = next((k.value for k in call.keywords if k.arg == "data"), None)
        whole = self._whole_of(data)
        if path not in ("T.decl_buffer", "T.Buffer") or whole is None:
            return False
        rest = [k for k in call.keywords if k.arg not in ("data", "strides", "elem_offset")]
        given = self._bound(at_place(ast.Call(call.func, call.args, rest), call)).named
        known = self._viewed(call, ast.Name(whole), given)
        if not known.packed:
            raise self.source.error(
                call, f"{whole!r} in another shape must lie element behind element"
            )
        lies = {str(k.arg): k.value for k in call.keywords}
        strides = self._dims(lies["strides"]) if said(lies.get("strides")) else []
        extents = self._extents(given["shape"])
        if strides and len(strides) != len(extents):
            raise self.source.error(lies["strides"], "there are as many strides as dims")
        offset = self._begin(data, known)
        if said(lies.get("elem_offset")):
            offset = plus(offset, self._dim(lies["elem_offset"]))
        self.views[name] = MemoryView(
            whole, known.shape, tuple(extents), tuple(strides) or None, offset
        )
        packed = not strides and constant(offset) == 0
        self.buffers[name] = Declared(known.dtype, tuple(extents), packed)
        return True

    def _declared_view(self, call: ast.Call) -> ast.Call:
        """``A.view(128)`` is a buffer declared in the memory of A; other calls as they are."""
        match call.func:
            case ast.Attribute(value=ast.Name(whole), attr="view") if whole in self.buffers:
                pass
            case _:
                return call
        args = call.args
        if call.keywords or not args or isinstance(constant(args[0]), str):
            raise self.source.error(call, "A.view takes the extents of another shape")
        shape = (
            args[0] if isinstance(args[0], ast.Tuple | ast.List) else ast.Tuple(args, ast.Load())
        )
        kind = ast.Constant(str(self.buffers[whole].dtype))
        data = written("a.data", call, a=ast.Name(whole, ast.Load()))
        made = ast.Call(dotted("T.decl_buffer"), [shape, kind], [keyword("data", data)])
        return at_place(made, call)

    def _whole_of(self, data: ast.expr | None) -> str | None:
        """The buffer that memory belongs to: ``A.data``, ``T.address_of(A[4])``."""
        match data:
            case ast.Attribute(value=ast.Name(whole), attr="data") if whole in self.buffers:
                return whole
            case ast.Call(args=[ast.Subscript(value=ast.Name(whole))]) if (
                path_of(data.func) == "T.address_of" and whole in self.buffers
            ):
                return whole
            case _:
                return None

    def _begin(self, data: ast.expr | None, known: Declared) -> ast.expr:
        """The element at which memory begins that an address is given of."""
        match data:
            case ast.Call(args=[ast.Subscript(slice=index)]):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                return flat_index(known.shape, [self.visit(p) for p in parts])
            case _:
                return ast.Constant(0)

    def _viewed(self, call: ast.Call, buffer: ast.expr, given: Mapping[str, ast.expr]) -> Declared:
        """The buffer that a view is of, which has its dtype."""
        known = self.buffers.get(path_of(buffer))
        if known is None:
            raise self.source.error(buffer, "the shape of the buffer is not known here")
        kind = constant(given.get("dtype", ast.Constant("float32")))
        if kind != known.dtype:
            raise self.source.error(
                call, f"the buffer holds {known.dtype}, its view {kind}", "say the same dtype"
            )
        return known

    def _alloc(self, call: ast.Call, ours: str) -> ast.expr:
        given = self._bound(call).named
        element = given.get("dtype") or ast.Constant("float32")
        keywords = [keyword("scope", given["scope"])] if "scope" in given else []
        align = given.get("align", _alignment(self.source, given.get("annotations")))
        if align is not None and constant(align) not in (-1, 0):
            keywords.append(keyword("align", align))
        for theirs, name in (("strides", "strides"), ("axis_separators", "separators")):
            parts = self._dims(given[theirs]) if said(given.get(theirs)) else []
            if parts:
                whole = at_place(ast.Tuple(parts, ast.Load()), given[theirs])
                keywords.append(keyword(name, whole))
        given_shape = given["shape"]
        shape: ast.expr = (
            at_place(ast.Tuple(self._extents(given_shape), ast.Load()), given_shape)
            if self._is_dim(given_shape)
            else self.visit(given_shape)
        )
        return at_place(ast.Call(dotted(ours), [shape, element], keywords), call)


def _alignment(source: Source, annotations: ast.expr | None) -> ast.expr | None:
    """The alignment that TVM notes at an allocation once it is lowered."""
    if annotations is None:
        return None
    entries: dict[object, ast.expr] = {}
    if isinstance(annotations, ast.Dict):
        entries = {
            constant(k): v for k, v in zip(annotations.keys, annotations.values, strict=True)
        }
    for key, value in entries.items():
        if key not in _OF_ALLOCATIONS or (key == _ADDRESSES and constant(value) != []):
            raise source.error(value, f"Unity has no {key!r} for an allocation", "leave it out")
    return entries.get("buffer_data_alignment")


def _is_bound(node: ast.AST) -> TypeGuard[ast.Name]:
    """Whether it is a name on the left of a binding."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _is_dataflow(node: ast.With) -> bool:
    given = node.items[0].context_expr
    return isinstance(given, ast.Call) and path_of(given.func) == "R.dataflow"


def _of_region(call: ast.Call) -> bool:
    """Whether ``T.match_buffer`` is given a part of another buffer."""
    return bool(call.args) and isinstance(call.args[0], ast.Subscript)


def _with_private(attrs: ast.expr | None, option: ast.keyword) -> ast.expr:
    """A function's attributes, with that of one that is for its module alone."""
    made = attrs if isinstance(attrs, ast.Dict) else at_place(ast.Dict([], []), option)
    made.keys.append(ast.copy_location(ast.Constant("private"), option))
    made.values.append(option.value)
    return made
