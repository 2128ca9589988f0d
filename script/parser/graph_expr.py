"""Graph expressions from syntax: operator calls, tuples, constants, calls across layers.

An expression is either a graph expression or still a Python value (a number, a dim, a tuple of
those); the place it is used at decides what a Python value becomes.
"""

from __future__ import annotations

import ast
import builtins
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from unity.arguments import Signature
from unity.errors import Span, UnityError
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.dims import SymDim, as_dim, symbols_of
from unity.ir.dtype import BOOL, INT64, Array, DType, dtype
from unity.ir.graph import (
    Call,
    Constant,
    Expr,
    FunctionRef,
    Literal,
    PrimValue,
    ShapeValue,
    Tuple,
    Var,
)
from unity.ir.stmt import PrimFunc
from unity.ir.types import FuncType, ObjectType, PrimType, ShapeType, TensorType, TupleType, Type
from unity.op.builder import GraphBuilder
from unity.op.call import call_op, is_expr, prim_value, scalar
from unity.op.infer import infer_type
from unity.op.table import OPS

from ..annotations import BufferSpec, Element
from ..graph_names import as_type
from ..marker import Marker
from ..program import Program, ScriptExtern, ScriptForward, ScriptFunction, ScriptPrimFunc
from .evaluate import Evaluator, shown
from .prim_func import attrs_of
from .scope import MISSING, Lifted, Named, Scope, Undefined
from .source import Source, items_of

_OF_BOOLS: Mapping[str, str] = {"multiply": "logical_and"}
"""What TVM's operators of numbers mean of bools."""
_WHOLE_IN_TVM = frozenset({"mean", "variance", "std"})
"""Operators whose results are floats here, and of integers are not in TVM."""


@dataclass(frozen=True, slots=True)
class Cast:
    """``R.match_cast(value, type)``, until it is bound."""

    value: Expr
    type: Type


@dataclass(slots=True)
class Surroundings:
    """What a graph function is parsed with.

    Attributes:
        builder: Holds the bindings made so far.
        kernels: The prim funcs known, by the name they are referred to.
        refers: The decorated functions referred to, by that name.
        arrays: What ``R.const("name")`` stands for.
        params: The names of parameters of functions that are called by name, and of closures.
        text: Whether a printed text is parsed: types it declares are trusted.
        forward: Finds a decorated function that is defined below this one.
        called_within: Whether a closure that became a function calls the one that is parsed.
        tvmscript: Whether TVM's rules hold: a result that is declared more narrowly is asserted to
            be so, and a function is pure unless it says that it is not.
    """

    builder: GraphBuilder
    kernels: dict[str, PrimFunc] = field(default_factory=dict[str, PrimFunc])
    refers: dict[str, Program] = field(default_factory=dict[str, Program])
    arrays: Mapping[str, Array] = field(default_factory=dict[str, Array])
    params: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    text: bool = False
    tvmscript: bool = False
    called_within: bool = False
    forward: Callable[[str], ScriptForward | None] | None = None


class GraphEvaluator(Evaluator):
    """Evaluates expressions inside a graph function."""

    def __init__(self, source: Source, scope: Scope, around: Surroundings) -> None:
        super().__init__(source, scope)
        self.around = around
        self.builder = around.builder
        self.mentions: dict[str, ast.Name] = {}
        self._constants: dict[int, Constant] = {}
        self._kept: list[object] = []  # keeps the arrays alive whose ids are keys

    def expr(self, node: ast.expr) -> Expr:
        """An expression as a graph expression.

        Raises:
            UnityError: It is none.
        """
        return self.graph(node, self.value(node))

    def atom(self, node: ast.expr) -> Expr:
        """An expression as an operand: bound first if need be."""
        return self.builder.atom(self.expr(node))

    def graph(self, node: ast.expr, value: object) -> Expr:
        """A value as a graph expression: numbers and arrays become constants."""
        span = self.source.span(node)
        if is_expr(value):
            return value
        match value:
            case Cast():
                return self.builder.match_cast(value.value, value.type, None, span)
            case ScriptFunction() | ScriptPrimFunc() | ScriptExtern() | ScriptForward() | Named():
                return self.reference(value, span)
            case bool():
                return self.constant_of(np.asarray(value), span)
            case int():
                return self.constant_of(np.asarray(value, np.int64), span)
            case float():
                return self.constant_of(np.asarray(value, np.float32), span)
            case np.ndarray() | np.generic():
                return self.constant_of(value, span)
            case tuple() | list():
                return Tuple(tuple(self.graph(node, v) for v in value), span)
            case SymDim():
                return PrimValue(value, INT64, span)
            case Lifted():
                raise self.source.error(
                    node,
                    f"{ast.unparse(node)!r} can be called only: it became a function of the module",
                    "write it as a function of the module, with parameters for what it sees here",
                )
            case _:
                raise self.source.error(
                    node,
                    f"{shown(value)} is no value of a graph function",
                    f"a text is written R.text({value!r})"
                    if isinstance(value, str)
                    else "captured values may be numbers, numpy arrays, tuples of them, dims and "
                    "decorated functions",
                )

    def constant_of(self, value: object, span: Span | None) -> Constant:
        """An array as a constant; the same array is the same constant."""
        known = self._constants.get(id(value))
        if known is None:
            data = np.asarray(value)
            try:
                dtype(data.dtype)
            except UnityError as error:
                raise UnityError(f"captured array: {error.message}", span, error.hint) from None
            known = Constant(data, None, span)
            self._constants[id(value)] = known
            self._kept.append(value)
        return known

    def reference(self, value: Program | Named, span: Span | None) -> FunctionRef:
        """A function by the name it has in this function's module."""
        if isinstance(value, Named):
            return FunctionRef(value.name, span)
        name, count = value.name, 0
        while name in self.builder.signatures and self.around.refers.get(name) != value:
            count += 1
            name = f"{value.name}_{count}"
        if name not in self.around.refers:
            self.around.refers[name] = value
            if isinstance(value, ScriptPrimFunc):
                self.around.kernels[name] = value.func
                self.builder.signatures[name] = ObjectType()
            elif isinstance(value, ScriptExtern | ScriptForward):
                self.builder.signatures[name] = value.func.type
            else:
                f = value.func
                kinds = tuple(p.type for p in f.params)
                self.builder.signatures[name] = FuncType(kinds, f.result, f.pure)
        return FunctionRef(name, span)

    def name(self, node: ast.Name) -> object:
        """A name; notes where each symbol is mentioned first."""
        later = self.around.forward
        if later is not None and self.scope.lookup(node.id) is MISSING:
            forward = later(node.id)
            if forward is not None:
                self.scope.bind_outermost(node.id, forward)
        found = super().name(node)
        if isinstance(found, SymDim):
            for symbol in symbols_of(found):
                self.mentions.setdefault(symbol.name, node)
        if isinstance(found, Undefined):
            raise self.source.error(
                node,
                f"{node.id!r} is only assigned in one branch of the if above",
                "assign it in both, or before",
            )
        return found

    def constant(self, node: ast.expr) -> object:
        """A Python value; symbols mentioned in it are noted."""
        plain = _Plain(self.source, self.scope, self.mentions)
        return plain.value(node)

    def annotation(self, node: ast.expr) -> Type:
        """The type that an annotation says; ``x.type`` is that of a value."""
        if isinstance(node, ast.Attribute) and node.attr == "type":
            base = self.value(node.value)
            if is_expr(base):
                return self.type_of(base)
        found = self.type(node)
        if isinstance(found, BufferSpec):
            raise self.source.error(
                node, "a function takes tensors, got a Buffer", "write f32[Tensor, n, 128]"
            )
        try:
            return as_type(found)
        except UnityError as error:
            message = f"expected a type, got {shown(found)}"
            raise self.source.error(node, message, error.hint) from None

    def type_of(self, e: Expr) -> Type:
        """The type of an expression."""
        return infer_type(e, self.builder.signatures, self.builder.fresh)

    def operand(self, node: ast.expr) -> object:
        """An argument: a Python value, or a graph expression that needs no binding any more."""
        return self._settle(node, self.value(node))

    def _settle(self, node: ast.expr, value: object) -> object:
        if isinstance(
            value,
            Cast | Lifted | ScriptFunction | ScriptPrimFunc | ScriptExtern | ScriptForward | Named,
        ):
            return self.graph(node, value)
        if isinstance(value, tuple | list):
            settled = [self._settle(node, v) for v in value]
            return tuple(settled) if isinstance(value, tuple) else settled
        if isinstance(value, np.ndarray):
            return self.graph(node, value)
        return self.builder.atom(value) if is_expr(value) else value

    def _op(
        self, node: ast.expr, name: str, args: Sequence[object], named: dict[str, object]
    ) -> Call:
        span = self.source.span(node)
        if self.around.tvmscript and name in _OF_BOOLS and all(map(self._is_bool, args)):
            name = _OF_BOOLS[name]
        if self.around.tvmscript and name in _WHOLE_IN_TVM:
            self._check_float(node, name, args[:1])
        return call_op(name, *args, span=span, signatures=self.builder.signatures, **named)

    def _check_float(self, node: ast.expr, name: str, args: Sequence[object]) -> None:
        for value in args:
            kind = self.type_of(value) if is_expr(value) else None
            if isinstance(kind, TensorType) and kind.dtype and not kind.dtype.is_float:
                raise self.source.error(
                    node,
                    f"R.{name} of {kind.dtype} is computed in whole numbers by TVM, not by Unity",
                    f'R.{name}(R.astype(x, "float32"), ...) is the same in both',
                )

    def _is_bool(self, value: object) -> bool:
        kind = self.type_of(value) if is_expr(value) else None
        return isinstance(kind, TensorType) and kind.dtype == BOOL

    def checked(self, node: ast.expr, make: Callable[[], Expr]) -> Expr:
        """Errors of what is made get the place of the node; its type is checked."""
        try:
            made = make()
            infer_type(made, self.builder.signatures)  # names no fresh symbols: not bound yet
        except UnityError as error:
            raise UnityError(
                error.message, error.span or self.source.span(node), error.hint
            ) from None
        return made

    def call(self, node: ast.Call) -> object:
        """A call of an operator, of a function, or of one of the few that run while parsing."""
        function = self.value(node.func)
        if isinstance(function, Marker):
            return self._language_call(node, function.path)
        span = self.source.span(node)
        match function:
            case ScriptPrimFunc() | ScriptFunction() | ScriptExtern() | ScriptForward() | Named():
                callee: FunctionRef | Var = self.reference(function, span)
                if callee.name in self.around.kernels:
                    raise self.source.error(
                        node,
                        f"{callee.name!r} is a prim_func: it can't be called like a function",
                        f"write R.call_tir({callee.name}, (...), out=f32[Tensor, ...])",
                    )
            case Var():
                callee = function
            case Lifted():
                callee = FunctionRef(function.name, span)
            case _ if function is builtins.print:
                return self.print_call(node)
            case _:
                found = self.python_call(node, function)
                return self._run_call(node, function) if found is None else found
        kinds, attrs = self._params_of(node, callee), NO_ATTRS
        given, said = self._in_order(node, function, callee)
        values = [
            (a, v)
            for a in given
            for v in (self.items([a]) if isinstance(a, ast.Starred) else [self.value(a)])
        ]
        args = tuple(self.passed(a, v, kinds.get(k)) for k, (a, v) in enumerate(values))
        if isinstance(function, Lifted):
            if len(args) != function.params:
                many = f"{ast.unparse(node.func)} takes {function.params} arguments"
                raise self.source.error(node, f"{many}, got {len(args)}")
            args += function.seen
        if said is not None:
            attrs = self.attrs(said)
        return self.checked(node, lambda: Call(callee, args, attrs, span))

    def _in_order(
        self, node: ast.Call, function: object, callee: FunctionRef | Var
    ) -> tuple[list[ast.expr], ast.expr | None]:
        """The arguments of a function by position, and the call's own ``attrs={...}``."""
        match function:
            case ScriptFunction():
                names = tuple(p.name for p in function.func.params)
            case ScriptForward():
                names = function.params
            case _:
                names = self.around.params.get(_known_as(callee), ())
        own = [k for k in node.keywords if k.arg == "attrs" and "attrs" not in names]
        said = own[0].value if own else None
        keywords = [k for k in node.keywords if k not in own]
        if not keywords:
            return node.args, said
        if not names:
            raise self.source.error(
                keywords[0],
                f"the parameters of {callee.name!r} have no names: arguments go by position",
            )
        taken = ast.copy_location(ast.Call(node.func, node.args, keywords), node)
        bound = self.given(taken, Signature.parse(f"{callee.name}({', '.join(names)})"))
        return [bound.named[name] for name in names], said

    def _params_of(self, node: ast.Call, callee: FunctionRef | Var) -> dict[int, Type]:
        """The types of a function's parameters, by position."""
        missing = isinstance(callee, FunctionRef) and callee.name not in self.builder.signatures
        kind = ObjectType() if missing else self.type_of(callee)
        if missing or (isinstance(kind, ObjectType) and _known_as(callee) in self.around.params):
            raise self.source.error(
                node.func,
                f"{callee.name!r} is called before it is known what it returns",
                f"declare it: def {callee.name}(...) -> f32[Tensor, n]:",
            )
        return dict(enumerate(kind.params)) if isinstance(kind, FuncType) else {}

    def passed(self, node: ast.expr, value: object, wanted: Type | None) -> Expr:
        """An argument of a function: Python's numbers and texts become what its parameter is."""
        match wanted, value:
            case TensorType(() | 0 | None, DType() as kind), bool() | int() | float():
                span, what = self.source.span(node), ast.unparse(node)
                return self.checked(node, lambda: scalar(value, kind, span, what))
            case TensorType(() | 0 | None, kind), SymDim() | PrimValue() | Var():
                return self.tensor(node, self.graph(node, value), kind)
            case PrimType(kind), bool() | int() | float() | SymDim():
                return self.checked(node, lambda: prim_value(value, kind, self.source.span(node)))
            case ObjectType(), _:
                return self.passed_object(node, value)
            case TupleType(kinds), tuple() | list() if len(value) == len(kinds):
                fields = map(self.passed, items_of(node, len(value)), value, kinds)
                return self.builder.atom(Tuple(tuple(fields), self.source.span(node)))
            case ShapeType(), tuple():
                dims = [d.value if isinstance(d, PrimValue) else d for d in value]
                made = self.run(node, lambda: tuple(as_dim(d) for d in dims))
                assert isinstance(made, tuple)
                return ShapeValue(made, self.source.span(node))
            case PrimType(kind), _ if is_expr(value):
                found = self.type_of(value)
                atom = self.builder.atom(value)
                return self.scalar(node, atom) if found == TensorType((), kind) else atom
            case _:
                return self.builder.atom(self.graph(node, value))

    def passed_object(self, node: ast.expr, value: object) -> Expr:
        """An argument of any type: numbers are scalars, texts and dtypes are themselves."""
        span = self.source.span(node)
        match value:
            case bool() | int() | float() | SymDim():
                return prim_value(value, None, span)
            case str() | DType():
                return Literal(value, span)
            case Element(DType() as kind):
                return Literal(kind, span)
            case tuple() | list() if not is_expr(value):
                return self.builder.atom(Tuple(tuple(self.passed_object(node, v) for v in value)))
            case _:
                return self.builder.atom(self.graph(node, value))

    def name_params(self, callee: FunctionRef | Var, names: Iterable[str]) -> None:
        """Note what the parameters of a function or a closure are called."""
        self.around.params[_known_as(callee)] = tuple(names)

    @abstractmethod
    def tensor(self, node: ast.AST, e: Expr, like: DType | None = None) -> Expr:
        """A scalar as a tensor of rank 0; anything else as it is."""

    @abstractmethod
    def scalar(self, node: ast.AST, e: Expr) -> Expr:
        """The number in a tensor of rank 0, as a scalar."""

    @abstractmethod
    def python_call(self, node: ast.Call, function: object) -> object:
        """``min(x, y)`` and its like, if a value that is known when it runs takes part."""

    @abstractmethod
    def print_call(self, node: ast.Call) -> Expr:
        """``print(x, y)``."""

    def _run_call(self, node: ast.Call, function: object) -> object:
        arguments = [*node.args, *(k.value for k in node.keywords)]
        values = [self.value(a) for a in arguments if not isinstance(a, ast.Starred)]
        name = ast.unparse(node.func)
        operator = name.rpartition(".")[2]
        if any(is_tensor(v) for v in values):
            if operator in OPS and callable(function):
                told = f"{name!r} computes nothing of a tensor"
                raise self.source.error(node, told, f"the operator is R.{operator}")
            raise self.not_runnable(node, function)
        size = next((v for v in values if isinstance(v, SymDim)), None)
        try:
            return super().call(node)
        except UnityError as error:
            if size is None or error.hint is not None or operator not in OPS:
                raise
            raise self.source.error(
                node,
                f"{name!r} can't compute with {size}, which is known when the program runs",
                f"the operator is R.{operator}; float({size}) is a number that it takes",
            ) from None

    def _language_call(self, node: ast.Call, path: str) -> object:
        if path.startswith("T."):
            raise self.source.error(
                node, f"{path} is for prim_funcs, this is a function", "use an operator of R"
            )
        return self.operator_call(node, path.removeprefix("R."))

    @abstractmethod
    def operator_call(self, node: ast.Call, name: str) -> Expr:
        """A call of an operator of ``R``."""

    def arguments(self, node: ast.Call) -> Mapping[str, ast.expr]:
        """A call's arguments by name, as the signature of the name of the language says."""
        return self.given(node, self.signature(node)).named

    def attrs(self, node: ast.expr) -> Attrs:
        """``attrs={...}``."""
        found = self.constant(node)
        if not isinstance(found, dict):
            raise self.source.error(node, f"attrs must be a dict, got {shown(found)}")
        try:
            return attrs_of({str(k): v for k, v in found.items()})
        except UnityError as error:
            raise self.source.error(node, error.message, error.hint) from None

    def text(self, node: ast.expr) -> str:
        """A string known while parsing."""
        found = self.constant(node)
        if not isinstance(found, str):
            raise self.source.error(node, f"expected a string, got {shown(found)}")
        return found


class _Plain(Evaluator):
    """Python values only; notes where each symbol is mentioned first."""

    def __init__(self, source: Source, scope: Scope, mentions: dict[str, ast.Name]) -> None:
        super().__init__(source, scope)
        self._mentions = mentions

    def name(self, node: ast.Name) -> object:
        found = super().name(node)
        if isinstance(found, SymDim):
            for symbol in symbols_of(found):
                self._mentions.setdefault(symbol.name, node)
        return found


def _known_as(callee: FunctionRef | Var) -> str:
    """A closure may have the name of a function of the module."""
    return callee.name if isinstance(callee, FunctionRef) else f"closure {callee.name}"


def is_tensor(value: object) -> bool:
    """Whether a value is known when the program runs, or is an array."""
    return is_expr(value) or isinstance(value, Cast | np.ndarray)
