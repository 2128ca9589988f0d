"""Prim funcs of TVMScript in fewer of its own words, before names and calls are turned into ours.

What can be written in several ways there comes to be written in one: ``with T.LetStmt(x) as y:`` is
an assignment in a suite, ``B.vstore([i], x)`` a store, ``A[0:4]`` the lanes ``T.Ramp(0, 1, 4)``, a
loop with a step one that counts steps, a value of ``T.meta_var`` stands where its name stood.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence

from ..parser.source import Source
from .bound_buffers import without_bound_buffers
from .plain_calls import plain_call, stored, without_value
from .plain_loops import plain_loop
from .syntax import at_place, constant, distance, path_of, written

_REGIONS = frozenset({"T.reads", "T.writes", "T.match_buffer", "T.realize"})
"""Calls in which a slice is a region, not lanes."""
_OPENED = frozenset({"T.allocate", "T.decl_buffer", "T.alloc_buffer", "T.allocate_const"})
_HINTS = frozenset(
    {
        "compute_scope",
        "device_id",
        "double_buffer_scope",
        "double_buffer_write",
        "extern_scope",
        "rolling_buffer_scope",
        "storage_alignment",
        "volatile_scope",
    }
)
"""Attributes of statements that say how TVM should compile them, and change no number."""
_PACKED = frozenset(
    {"T.tvm_struct_get", "T.tvm_struct_set", "T.call_packed_lowered", "T.call_cpacked_lowered"}
)
_JUMPS: Mapping[str, type[ast.Break | ast.Continue]] = {
    "T.break_loop": ast.Break,
    "T.continue_loop": ast.Continue,
}
"""What TVM prints where a loop is left."""
_CPU = 1
"""The number of ``kDLCPU``."""


def in_plain_words(source: Source, node: ast.FunctionDef) -> None:
    """Rewrite a prim func, in place.

    Raises:
        UnityError: A call doesn't fit its signature, or means nothing on one CPU.
    """
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and path_of(call.func) in _PACKED:
            raise source.error(
                call,
                f"{path_of(call.func)} belongs to TVM's way of calling packed functions",
                "read the module as it is before tirx.transform.MakePackedAPI",
            )
    without_bound_buffers(source, node)
    plain = _Plain(source, node)
    node.body = plain.suite(node.body)
    ast.fix_missing_locations(node)


class _Plain(ast.NodeTransformer):
    def __init__(self, source: Source, node: ast.FunctionDef) -> None:
        self.source = source
        self.function = node
        self.meta: dict[str, ast.expr] = {}
        self.in_region = False

    def suite(self, nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements, in plain words."""
        return [made for node in nodes for made in self._statement(node)]

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Call() as call) if (
                path_of(call.func) in ("T.meta_var", "I.meta_var") and len(call.args) == 1
            ):
                self.meta[name] = self._visited(call.args[0])
                return []
            case ast.Expr(ast.Call() as call):
                return self._call(node, call)
            case ast.With(items=[ast.withitem(ast.Call() as call)]):
                return self._with(node, call)
            case ast.For():
                node.iter = self._visited(node.iter)
                made = plain_loop(self.source, node, self.function)
                loop = made[0]
                loop.body = self.suite([*made[1], *loop.body])
                loop.orelse = self.suite(loop.orelse)
                return [loop]
            case ast.If() | ast.While():
                node.test = self._visited(node.test)
                node.body, node.orelse = self.suite(node.body), self.suite(node.orelse)
                return [node]
            case _:
                found: ast.stmt = self.visit(node)
                return [found]

    def _visited(self, node: ast.expr) -> ast.expr:
        found: ast.expr = self.visit(node)
        return found

    def _call(self, node: ast.Expr, call: ast.Call) -> list[ast.stmt]:
        path = path_of(call.func)
        if path in _JUMPS and not call.args and not call.keywords:
            return [at_place(_JUMPS[path](), node)]
        if path == "T.evaluate" and len(call.args) == 1 and isinstance(call.args[0], ast.Call):
            inner = call.args[0]
            if path_of(inner.func) in ("T.assume", *_JUMPS):
                return self._call(node, inner)
            call.args[0] = without_value(self._visited(inner))
            return [node]
        if path == "T.assume":
            if len(call.args) != 1 or call.keywords:
                raise self.source.error(call, "T.assume takes one condition")
            message = ast.Constant("what the kernel takes for granted does not hold")
            return [at_place(ast.Assert(self._visited(call.args[0]), message), node)]
        if path == "T.attr":
            self._check_attribute(call)
            return []
        written_out = stored(self.source, call)
        if written_out is not None:
            return self.suite(written_out)
        node.value = without_value(self._visited(call))
        return [node]

    def _with(self, node: ast.With, call: ast.Call) -> list[ast.stmt]:
        path, name = path_of(call.func), node.items[0].optional_vars
        if path == "T.LetStmt":
            body = [self._let(call, name), *node.body]
        elif path == "T.attr":
            self._check_attribute(call)
            body = node.body
        elif path in _OPENED and isinstance(name, ast.Name):
            body = [at_place(ast.Assign([name], call), call), *node.body]
        else:
            if path in ("T.block", "T.sblock"):
                node.body = _with_init_first(node.body)
            node.items[0].context_expr = self._visited(call)
            node.body = self.suite(node.body)
            return [node]
        node.items = [ast.withitem(written("T.suite()", call))]
        node.body = self.suite(body)
        return [node]

    def _let(self, call: ast.Call, name: ast.expr | None) -> ast.stmt:
        """The binding that ``with T.LetStmt(value, var=x) as y`` makes."""
        named = {k.arg: k.value for k in call.keywords}
        target = named.get("var", name)
        if len(call.args) != 1 or not isinstance(target, ast.Name) or set(named) - {"var"}:
            raise self.source.error(call, "T.LetStmt binds one value to a name")
        return at_place(ast.Assign([ast.Name(target.id, ast.Store())], call.args[0]), call)

    def _check_attribute(self, call: ast.Call) -> None:
        """Refuse an attribute of a statement that could change what it computes."""
        if len(call.args) != 3 or call.keywords:
            raise self.source.error(call, "T.attr takes a node, a key and a value")
        key, value = constant(call.args[1]), constant(call.args[2])
        if key == "device_type" and value == _CPU:
            return
        hint = str(key).startswith("pragma_") and not str(key).startswith("pragma_import")
        if key not in _HINTS and not hint:
            raise self.source.error(
                call,
                f"Unity has no T.attr(..., {key!r}, {ast.unparse(call.args[2])})",
                "read are those that change no number on one CPU, and 'buffer_bind_scope'; "
                "threads of a device, and what they reduce together, are for GPUs",
            )

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not isinstance(node.ctx, ast.Load) or node.id not in self.meta:
            return node
        return copy.deepcopy(self.meta[node.id])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        outer, self.in_region = self.in_region, path_of(node.func) in _REGIONS
        self.generic_visit(node)
        self.in_region = outer
        return plain_call(self.source, node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if self.in_region:
            return node
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        lanes = [self._lanes(p) if isinstance(p, ast.Slice) else p for p in parts]
        if any(isinstance(p, ast.Slice) for p in parts):
            whole = lanes[0] if len(lanes) == 1 else ast.Tuple(lanes, ast.Load())
            node.slice = at_place(whole, node.slice)
        return node

    def _lanes(self, part: ast.Slice) -> ast.expr:
        """``a:b`` in an access, as the numbers from `a` below `b`, of which there are so many."""
        first = part.lower or at_place(ast.Constant(0), part)
        step = 1 if part.step is None else constant(part.step)
        count = distance(first, part.upper)
        if count is None or not isinstance(step, int) or step < 1 or count < 1:
            raise self.source.error(
                part,
                "an access takes one element, or so many lanes as are known here",
                "write A[i : i + 4]; slices of other lengths are for T.reads and T.writes",
            )
        lanes = -(-count // step)
        return (
            first if lanes == 1 else written(f"T.Ramp(first, {step}, {lanes})", part, first=first)
        )


def _with_init_first(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The body of a block; what an init without a reduction does, it does each time, and first."""
    inits = [n for n in body if isinstance(n, ast.With) and _opens(n, "T.init")]
    if not inits or any(_reduces(n) for n in body):
        return list(body)
    rest = [n for n in body if n not in inits]
    head = [n for n in rest if _is_head(n)]
    suites: list[ast.stmt] = []
    for init in inits:
        init.items = [ast.withitem(written("T.suite()", init))]
        suites.append(init)
    return [*head, *suites, *(n for n in rest if n not in head)]


def _opens(node: ast.With, path: str) -> bool:
    call = node.items[0].context_expr
    return isinstance(call, ast.Call) and path_of(call.func) == path


def _called(node: ast.stmt) -> str:
    match node:
        case ast.Assign(value=ast.Call() as call) | ast.Expr(ast.Call() as call):
            return path_of(call.func)
        case _:
            return ""


def _reduces(node: ast.stmt) -> bool:
    path = _called(node)
    if path == "T.axis.remap" and isinstance(node, ast.Assign):
        call = node.value
        return isinstance(call, ast.Call) and "R" in str(constant(call.args[0]))
    return path in ("T.axis.reduce", "T.axis.R")


def _is_head(node: ast.stmt) -> bool:
    """Whether a statement says what a block is, rather than what it does."""
    path = _called(node)
    return path.startswith("T.axis.") or path in (
        "T.where",
        "T.reads",
        "T.writes",
        "T.block_attr",
        "T.sblock_attr",
        "T.alloc_buffer",
        "T.sblock_alloc_buffer",
        "T.match_buffer",
    )
