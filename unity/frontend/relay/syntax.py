"""Relay's syntax: what every reader (text, JSON, archives) gives and the translator takes.

Expressions are a graph. What Relay's text binds with ``%3 = ...;`` is one node that several others
hold, which means one computation; a `Let` is a let. So expressions compare by identity, and so do
variables: a use of a variable is the very `Var` that a parameter, a let or a pattern binds. Chains
of lets and of calls can be thousands deep: walk them with `children` and a stack, not by recursion.
Types compare by their structure. Spans take part in no comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from unity.errors import Span
from unity.ir.dtype import Array, DType

# ---- types


@dataclass(frozen=True, slots=True)
class TensorType:
    """``Tensor[(1, ?), float32]``; a scalar's type (``float32``) has the shape ``()``.

    Attributes:
        shape: The dims. None is Relay's ``?``: unknown, and no two of them need be equal. A string
            is a symbol's name, which only JSON has; two of one name are equal.
        dtype: The type of an element.
    """

    shape: tuple[Dim, ...]
    dtype: DType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TupleType:
    """``(A, B)``."""

    fields: tuple[Type, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FunctionType:
    """``fn (A, B) -> C``."""

    params: tuple[Type, ...]
    result: Type
    type_params: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AdtType:
    """A declared type, with its arguments: ``List[A]``."""

    name: str
    arguments: tuple[Type, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TypeVar:
    """A type parameter of the function or the declaration that it stands in."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RefType:
    """``ref(A)``: a cell that holds an A."""

    value: Type
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Hole:
    """``_``: a type that was left to inference."""

    span: Span | None = field(default=None, compare=False, repr=False)


Dim: TypeAlias = int | str | None
Type: TypeAlias = TensorType | TupleType | FunctionType | AdtType | TypeVar | RefType | Hole


# ---- attributes


@dataclass(frozen=True, slots=True)
class Record:
    """An object of TVM's that stands in an attribute and that we know by its name alone.

    Attributes:
        key: Its type key: ``tir.IndexMap``.
        fields: What it holds, as it was written.
    """

    key: str
    fields: tuple[tuple[str, str], ...] = ()


AttrValue: TypeAlias = (
    bool
    | int
    | float
    | str
    | DType
    | Record
    | tuple["AttrValue", ...]
    | dict[str, "AttrValue"]
    | None
)
Attributes: TypeAlias = Mapping[str, AttrValue]
"""By name. Those of a call of an operator are complete (defaults filled in) and of the declared
types: an empty dtype (``out_dtype`` left out) and an absent value are None, arrays are tuples."""


# ---- expressions


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Var:
    """A local variable, named without its ``%``; its type is None where the source says none."""

    name: str
    type: Type | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GlobalVar:
    """A function of the module, named without its ``@``."""

    name: str
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Op:
    """An operator: ``nn.conv2d``. Most often what a `Call` calls."""

    name: str
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constructor:
    """A constructor of a declared type; `Module.constructor` finds its declaration."""

    name: str
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constant:
    """A tensor, read-only; a literal (``1f``) is one of shape ``()``."""

    value: Array
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tuple:
    """``(a, b)``."""

    fields: tuple[Expr, ...]
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TupleGetItem:
    """``a.0``."""

    tuple: Expr
    index: int
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call:
    """``callee(arguments, attributes)``.

    Attributes:
        callee: An `Op`, a `Constructor`, a `GlobalVar`, or whatever gives a function.
        arguments: As many as the operator takes, where it is known.
        attributes: See `Attributes`; of other calls than those of operators, as written.
        given: The names of the attributes that the source itself gives, defaults or not.
    """

    callee: Expr
    arguments: tuple[Expr, ...]
    attributes: Attributes
    given: tuple[str, ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Let:
    """``let var = value; body``. In the value of a function, the variable is the function itself.

    ``a; b`` is a let of a variable named ``_`` that nothing reads.
    """

    var: Var
    value: Expr
    body: Expr
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class If:
    """``if (condition) { then } else { otherwise }``; the condition is a scalar bool."""

    condition: Expr
    then: Expr
    otherwise: Expr
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Match:
    """``match (value) { clauses }``; not complete means ``match?``, which may fail."""

    value: Expr
    clauses: tuple[Clause, ...]
    complete: bool = True
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Clause:
    """``pattern => body``; the first clause whose pattern fits is taken."""

    pattern: Pattern
    body: Expr
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Function:
    """A function, of the module or (``fn``) an expression, which may read variables around it."""

    params: tuple[Var, ...]
    body: Expr
    result: Type | None = None
    type_params: tuple[str, ...] = ()
    attributes: Attributes = field(default_factory=dict)
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RefCreate:
    """``ref(value)``."""

    value: Expr
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RefRead:
    """``ref_read(ref)``."""

    ref: Expr
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RefWrite:
    """``ref_write(ref, value)``, whose value is ``()``."""

    ref: Expr
    value: Expr
    span: Span | None = None


Expr: TypeAlias = (
    Var
    | GlobalVar
    | Op
    | Constructor
    | Constant
    | Tuple
    | TupleGetItem
    | Call
    | Let
    | If
    | Match
    | Function
    | RefCreate
    | RefRead
    | RefWrite
)


# ---- patterns


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WildcardPattern:
    """``_``: fits anything."""

    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VarPattern:
    """``%x``: fits anything and binds it."""

    var: Var
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConstructorPattern:
    """``Cons(%head, _)``."""

    constructor: str
    fields: tuple[Pattern, ...]
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TuplePattern:
    """``(%a, _)``."""

    fields: tuple[Pattern, ...]
    span: Span | None = None


Pattern: TypeAlias = WildcardPattern | VarPattern | ConstructorPattern | TuplePattern


# ---- modules


@dataclass(frozen=True, slots=True)
class ConstructorDeclaration:
    """``Cons(A, List[A])`` in a declaration."""

    name: str
    fields: tuple[Type, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """``type List[A] { Cons(A, List[A]), Nil }``; an extern type has no constructors."""

    name: str
    type_params: tuple[str, ...]
    constructors: tuple[ConstructorDeclaration, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Ignored:
    """Something that a file says and that no syntax of ours holds: readers tell all of it.

    Attributes:
        owner: What it is said of: "variables", "calls", "the module".
        name: What it is called.
        value: What it is; None where there is no more to say.
    """

    owner: str
    name: str
    value: AttrValue = None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Module:
    """A Relay module as a file holds it.

    Attributes:
        functions: By name, in the file's order; a model's entry is ``main``.
        types: The types that it declares, those of the prelude that it uses among them.
        params: Values for parameters of ``main``, by name: what a parameter dictionary or an
            archive gave beside the program. Read-only.
        attributes: The module's own.
        ignored: What the readers left out.
        file: What messages call the source.
    """

    functions: Mapping[str, Function]
    types: Mapping[str, TypeDeclaration] = field(default_factory=dict)
    params: Mapping[str, Array] = field(default_factory=dict)
    attributes: Attributes = field(default_factory=dict)
    ignored: tuple[Ignored, ...] = ()
    file: str = "<relay>"

    def constructor(self, name: str) -> tuple[TypeDeclaration, ConstructorDeclaration, int]:
        """The declaration of a constructor: its type, itself, and its place among the type's.

        Raises:
            KeyError: No type of the module has it; readers refuse such modules.
        """
        for declaration in self.types.values():
            for tag, constructor in enumerate(declaration.constructors):
                if constructor.name == name:
                    return declaration, constructor, tag
        raise KeyError(name)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions that one holds itself, in the order in which they are computed."""
    match expr:
        case Var() | GlobalVar() | Op() | Constructor() | Constant():
            return ()
        case Tuple():
            return expr.fields
        case TupleGetItem():
            return (expr.tuple,)
        case Call():
            return (expr.callee, *expr.arguments)
        case Let():
            return (expr.value, expr.body)
        case If():
            return (expr.condition, expr.then, expr.otherwise)
        case Match():
            return (expr.value, *(clause.body for clause in expr.clauses))
        case Function():
            return (expr.body,)
        case RefCreate():
            return (expr.value,)
        case RefRead():
            return (expr.ref,)
        case RefWrite():
            return (expr.ref, expr.value)
        case _:
            assert_never(expr)
