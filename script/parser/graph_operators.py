"""What operators of Python mean in a graph function: arithmetic, comparisons, parts of tensors."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

from unity.errors import UnityError
from unity.ir.dims import Dim, SymDim, always_ge, as_dim, equal, symbols_of
from unity.ir.dtype import BOOL
from unity.ir.graph import Expr, PrimValue, TupleGet
from unity.ir.types import PrimType, TensorType, TupleType, Type
from unity.op.call import bitwise, is_expr
from unity.op.movement.slicing import part_of, whole_index
from unity.op.naming import instead_of_method
from unity.op.table import OPS

from .graph_expr import Cast, is_tensor
from .graph_numbers import GraphNumbers, is_integer

_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "floor_mod",
    ast.Pow: "power",
    ast.MatMult: "matmul",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
    ast.And: "logical_and",
    ast.Or: "logical_or",
    ast.LShift: "left_shift",
    ast.RShift: "right_shift",
}
_INSTEAD: Mapping[type[ast.AST], str] = {
    ast.Is: "values are compared by numbers: x == y; a parameter is never None",
    ast.IsNot: "values are compared by numbers: x != y; a parameter is never None",
    ast.In: "R.any(x == 3.0) says whether an element is some number",
    ast.NotIn: "R.all(x != 3.0) says that no element is some number",
}
"""What to write for operators of Python that compare otherwise."""
_BITS: Mapping[type[ast.AST], str] = {
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.Invert: "not",
}
"""Words of `bitwise`."""


def _runs(node: ast.expr) -> bool:
    """Whether an operand calls a function, which may have effects or call itself."""
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    names = [ast.unparse(c.func).removeprefix("R.") for c in calls]
    return not all(name in _PYTHONS or (name in OPS and OPS[name].pure) for name in names)


_PYTHONS = frozenset({"abs", "min", "max", "float", "int", "len", "sum"})


class GraphOperators(GraphNumbers):
    """Evaluates operators of Python; one becomes an operator of ours if a tensor takes part."""

    def value(self, node: ast.expr) -> object:
        """The meaning of an expression."""
        match node:
            case ast.BoolOp(op, [first, *rest]):
                return self._in_turn(node, type(op), self.operand(first), rest)
            case _:
                return super().value(node)

    def _in_turn(
        self, node: ast.BoolOp, kind: type[ast.boolop], found: object, rest: list[ast.expr]
    ) -> object:
        """``and`` or ``or``: what follows is asked only if it decides, where that can be told."""
        if not rest or (isinstance(found, bool) and found == (kind is ast.Or)):
            return found
        first, *others = rest
        if not (is_expr(found) and any(map(_runs, rest))):
            return self._in_turn(
                node, kind, self._both(node, kind, found, self.operand(first)), others
            )

        def asked() -> Expr:
            return self.graph(node, self._in_turn(node, kind, self.operand(first), others))

        def decided_before() -> Expr:
            return self.graph(node, kind is ast.Or)

        ways = (asked, decided_before) if kind is ast.And else (decided_before, asked)
        return self.choice(node, found, *ways)

    @abstractmethod
    def choice(
        self, node: ast.expr, test: object, then: Callable[[], Expr], orelse: Callable[[], Expr]
    ) -> Expr:
        """One of two expressions, parsed where only that one is computed."""

    def _both(self, node: ast.expr, kind: type[ast.AST], a: object, b: object) -> object:
        """``and`` or ``or`` of two values."""
        for one, other in ((a, b), (b, a)):
            if isinstance(one, bool) and (isinstance(other, bool) or self._is_scalar(other)):
                decides = one == (kind is ast.Or)
                return one if decides else other
        return self.operator(node, kind, a, b)

    def _is_scalar(self, value: object) -> bool:
        """Whether it is one bool that is known when the program runs."""
        kind = self.type_of(value) if is_expr(value) else None
        of = kind.dtype if isinstance(kind, PrimType | TensorType) else None
        return of == BOOL and not (isinstance(kind, TensorType) and kind.ndim != 0)

    def operator(self, node: ast.expr, kind: type[ast.AST], left: object, right: object) -> object:
        """A Python operator on tensors and scalars."""
        name = _OPERATORS.get(kind) or self._of_bits(kind, left, right)
        if name is None:
            said = f"{ast.unparse(node)!r} has no meaning here"
            raise self.source.error(node, said, _INSTEAD.get(kind))
        return self.calculated(node, name, [left, right])

    def _of_bits(self, kind: type[ast.AST], *operands: object) -> str | None:
        """The operator that ``& | ^ ~`` are of these operands."""
        if kind not in _BITS:
            return None
        types = [self.type_of(v) if is_expr(v) else None for v in operands]
        dtypes = [t.dtype for t in types if isinstance(t, TensorType | PrimType)]
        return bitwise(dtypes, _BITS[kind])

    def combine(self, node: ast.BinOp, left: object, right: object) -> object:
        """Arithmetic: an operator if a tensor takes part."""
        if is_tensor(left) or is_tensor(right):
            a, b = self._settle(node.left, left), self._settle(node.right, right)
            return self.operator(node, type(node.op), a, b)
        if self._is_fraction(node, left, right):
            sides = [(node.left, left), (node.right, right)]
            a, b = (self.float_of(n, v) if isinstance(v, SymDim) else v for n, v in sides)
            return self.operator(node, type(node.op), a, b)
        return super().combine(node, left, right)

    def _is_fraction(self, node: ast.BinOp, left: object, right: object) -> bool:
        """Whether it calculates with a size as with a float: ``0.5 * n``."""
        both = (left, right)
        numbers = all(isinstance(v, SymDim | int | float) for v in both)
        kinds = {float, SymDim}
        return numbers and all(any(isinstance(v, kind) for v in both) for kind in kinds)

    def unary(self, node: ast.UnaryOp) -> object:
        """``-x``, ``+x``, ``~x`` and ``not x``."""
        if isinstance(node.operand, ast.Constant):
            return super().unary(node)
        value = self.operand(node.operand)
        if not is_expr(value):
            return super().unary(node)
        match node.op:
            case ast.UAdd():
                return value
            case ast.USub():
                return self.calculated(node, "negative", [value])
            case ast.Not():
                return self.calculated(node, "logical_not", [value])
            case _:
                name = self._of_bits(type(node.op), value)
                assert name is not None
                return self.calculated(node, name, [value])

    def compare(self, node: ast.Compare) -> object:
        """A comparison of tensors, or of captured values."""
        left, result = self.operand(node.left), None
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.operand(comparator)
            found = self._compared(node, type(op), left, right)
            result = found if result is None else self._both(node, ast.And, result, found)
            left = right
        return result

    def _compared(
        self, node: ast.Compare, kind: type[ast.cmpop], left: object, right: object
    ) -> object:
        """One comparison: known now, or a value when it runs."""
        if is_expr(left) or is_expr(right):
            return self.operator(node, kind, left, right)
        match left, right:
            case (SymDim() as a, (SymDim() | int()) as b) | (int() as a, SymDim() as b):
                found = decided(kind, a, b)
                if found is not None:
                    return found
                return self.operator(node, kind, self.graph(node, a), self.graph(node, b))
            case _:
                return self.comparison(node, kind, left, right)

    def subscript(self, node: ast.Subscript) -> object:
        """A field of a tuple; a part of a captured tuple; a type."""
        base = self.value(node.value)
        if isinstance(base, Cast) or is_expr(base):
            base = self.builder.atom(self.graph(node.value, base))
            kind = self.type_of(base)
            if isinstance(kind, TensorType) and isinstance(kind.shape, tuple):
                return self._part(node, base, kind.shape)
            if not isinstance(kind, TupleType):
                raise self.source.error(
                    node,
                    f"{ast.unparse(node.value)!r} is neither a tuple nor a tensor of known sizes: "
                    "it can't be indexed",
                    "R.match_cast(value, type) says what its shape is",
                )
            index = self.constant(node.slice)
            if not isinstance(index, int) or not -len(kind.fields) <= index < len(kind.fields):
                raise self.source.error(
                    node.slice, f"the tuple has {len(kind.fields)} fields, got index {index!r}"
                )
            return TupleGet(base, index % len(kind.fields), self.source.span(node))
        if isinstance(base, tuple | list | dict):
            index = self.constant(node.slice)
            if is_expr(index) or isinstance(index, SymDim):
                raise self.source.error(
                    node.slice,
                    f"which field it is must be known when the program is compiled, "
                    f"{ast.unparse(node.slice)!r} when it runs",
                    "R.stack makes one tensor of them, of which R.take takes a row",
                )
            return self.run(node, base.__getitem__, index)
        return self.type(node)

    def _part(self, node: ast.Subscript, x: Expr, shape: tuple[Dim, ...]) -> Expr:
        """A part of a tensor: integers, slices, ``...`` and None.

        What is known when the program runs is an index of `take`.
        """
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]

        def applied(name: str, value: Expr, *attrs: object) -> Expr:
            operand = self.builder.atom(value)
            return self.checked(node, lambda: self._op(node, name, [operand, *attrs], {}))

        index = [self._index(p) for p in parts]
        try:
            spread = whole_index(index, len(shape))
            late = [k for k, i in enumerate(spread) if self._is_late(i, spread[:k], shape)]
            known = tuple(slice(None) if k in late else i for k, i in enumerate(spread))
            found = part_of(shape, known).of(x, applied)
        except UnityError as error:
            if error.span is not None:
                raise
            raise self.source.error(node, error.message, error.hint) from None
        for k in reversed(late):
            axis = sum(i is None or isinstance(i, slice) for i in known[:k])
            found = applied("take", found, spread[k], axis)
        return found

    def _is_late(self, index: object, before: Sequence[object], shape: tuple[Dim, ...]) -> bool:
        """Whether only the run tells which element an index means, or that it is there."""
        if is_expr(index):
            return True
        if not isinstance(index, SymDim) or self.counters.isdisjoint(symbols_of(index)):
            return False
        size = shape[sum(i is not None for i in before)]
        return not (always_ge(index, 0) and always_ge(size, as_dim(index + 1)))

    def _index(self, node: ast.expr) -> object:
        if isinstance(node, ast.Slice):
            ends = (node.lower, node.upper, node.step)
            return slice(*(None if e is None else self._end(e) for e in ends))
        value = self.operand(node)
        if isinstance(value, PrimValue) and not isinstance(value.value, float | bool):
            return value.value
        if is_expr(value) and not is_integer(self.type_of(value)):
            raise self.source.error(
                node, "an index holds a tensor", "R.take(x, indices, axis=0) takes rows by number"
            )
        return value

    def _end(self, node: ast.expr) -> object:
        return self.size(node, self.operand(node))

    def attribute(self, node: ast.Attribute) -> object:
        """``x.shape``, ``x.ndim`` and ``x.dtype`` of a tensor; else as in Python."""
        if node.attr in ("shape", "ndim", "dtype"):
            base = self.value(node.value)
            if is_expr(base):
                kind = self.type_of(base)
                found = known(kind, node.attr)
                if found is None:
                    raise self.source.error(
                        node, f"the {node.attr} of {ast.unparse(node.value)!r} is not known"
                    )
                return found
        base = self.value(node.value)
        if is_expr(base):
            raise self.source.error(
                node,
                f"a value of a graph function has no {node.attr!r}",
                instead_of_method(node.attr, ast.unparse(node.value), "R")
                or "it has shape, ndim and dtype; what is computed are operators of R",
            )
        return super().attribute(node)


def decided(kind: type[ast.AST], a: Dim, b: Dim) -> bool | None:
    """What facts of sizes say of a comparison; None where it depends."""
    if kind in (ast.Gt, ast.GtE):
        return decided(ast.Lt if kind is ast.Gt else ast.LtE, b, a)
    below, above = always_ge(b, as_dim(a + 1)), always_ge(a, as_dim(b + 1))
    if kind in (ast.Eq, ast.NotEq):
        same = True if equal(a, b) else False if below or above else None
        return same if same is None or kind is ast.Eq else not same
    if kind is ast.Lt:
        return True if below else False if always_ge(a, b) else None
    return True if always_ge(b, a) else False if above else None


def known(kind: Type, name: str) -> object:
    """A tensor's shape, rank or dtype (by name); None if that is not known."""
    if not isinstance(kind, TensorType):
        return None
    if name == "dtype":
        return None if kind.dtype is None else kind.dtype.name
    if name == "ndim":
        return kind.ndim
    return kind.shape if isinstance(kind.shape, tuple) else None
