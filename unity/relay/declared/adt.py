"""Declared types, matches and references as scripts build them."""

from __future__ import annotations

from collections.abc import Sequence

from unity.errors import UnityError
from unity.frontend.relay import syntax

from ..expr import Expr, Var, node_of
from ..places import here


class GlobalTypeVar:
    """The name of a declared type; called with its arguments it is a type.

    >>> from unity import relay
    >>> GlobalTypeVar("List")(relay.scalar_type("int32")).name
    'List'
    """

    def __init__(self, name_hint: str, kind: object = None) -> None:
        self.name_hint = name_hint

    def __call__(self, *arguments: syntax.Type) -> syntax.AdtType:
        """The type with its arguments."""
        return syntax.AdtType(self.name_hint, arguments)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same name."""
        return isinstance(other, GlobalTypeVar) and other.name_hint == self.name_hint

    def __hash__(self) -> int:
        return hash(self.name_hint)


def type_var(name_hint: str, kind: object = None) -> syntax.TypeVar:
    """A type parameter."""
    return syntax.TypeVar(name_hint)


def type_call(func: GlobalTypeVar, args: Sequence[syntax.Type]) -> syntax.AdtType:
    """A declared type with its arguments."""
    return func(*args)


class Constructor(Expr):
    """A constructor of a declared type; called it makes a value.

    Attributes:
        name_hint: What it is called.
        inputs: The types of its fields.
        belong_to: The type.
        tag: Its place in the declaration, from 0; -1 before there is one.
    """

    __slots__ = ("belong_to", "inputs", "name_hint", "tag")

    def __init__(
        self, name_hint: str, inputs: Sequence[syntax.Type], belong_to: GlobalTypeVar
    ) -> None:
        super().__init__(syntax.Constructor(name_hint, here()))
        self.name_hint, self.inputs, self.belong_to = name_hint, tuple(inputs), belong_to
        self.tag = -1


class TypeData:
    """The declaration of a type.

    Args:
        header: Its name.
        type_vars: Its parameters.
        constructors: What makes values of it, whose tags are their places here.
    """

    def __init__(
        self,
        header: GlobalTypeVar,
        type_vars: Sequence[syntax.TypeVar],
        constructors: Sequence[Constructor],
    ) -> None:
        self.header, self.type_vars = header, tuple(type_vars)
        self.constructors = tuple(constructors)
        for tag, constructor in enumerate(self.constructors):
            constructor.tag = tag

    @property
    def declaration(self) -> syntax.TypeDeclaration:
        """It as syntax."""
        made = [syntax.ConstructorDeclaration(c.name_hint, c.inputs) for c in self.constructors]
        params = tuple(v.name for v in self.type_vars)
        return syntax.TypeDeclaration(self.header.name_hint, params, tuple(made), here())


def type_data(declaration: syntax.TypeDeclaration) -> TypeData:
    """A declaration as scripts have it."""
    header = GlobalTypeVar(declaration.name)
    made = [Constructor(c.name, c.fields, header) for c in declaration.constructors]
    return TypeData(header, [syntax.TypeVar(n) for n in declaration.type_params], made)


# ---- patterns


class Pattern:
    """What a clause of a match looks for.

    Attributes:
        pattern: It as syntax.
    """

    def __init__(self, pattern: syntax.Pattern) -> None:
        self.pattern = pattern


class PatternWildcard(Pattern):
    """Fits anything."""

    def __init__(self) -> None:
        super().__init__(syntax.WildcardPattern(here()))


class PatternVar(Pattern):
    """Fits anything and binds it."""

    def __init__(self, var: Var) -> None:
        if not isinstance(var.node, syntax.Var):
            raise UnityError("PatternVar takes a variable", here(), 'relay.var("x")')
        super().__init__(syntax.VarPattern(var.node, here()))


class PatternConstructor(Pattern):
    """Fits what a constructor made, if its fields fit."""

    def __init__(self, constructor: Constructor, patterns: Sequence[Pattern] = ()) -> None:
        inner = tuple(p.pattern for p in patterns or ())
        super().__init__(syntax.ConstructorPattern(constructor.name_hint, inner, here()))


class PatternTuple(Pattern):
    """Fits a tuple whose fields fit."""

    def __init__(self, patterns: Sequence[Pattern] = ()) -> None:
        super().__init__(syntax.TuplePattern(tuple(p.pattern for p in patterns), here()))


class Clause:
    """A pattern, and the value of a match where it is the first that fits."""

    def __init__(self, lhs: Pattern, rhs: object) -> None:
        self.clause = syntax.Clause(lhs.pattern, node_of(rhs), here())


class Match(Expr):
    """A value by the first clause whose pattern fits."""

    def __init__(self, data: object, clauses: Sequence[Clause], complete: bool = True) -> None:
        made = tuple(c.clause for c in clauses)
        super().__init__(syntax.Match(node_of(data), made, complete, here()))


# ---- references


class RefCreate(Expr):
    """A reference that holds a value."""

    def __init__(self, value: object) -> None:
        super().__init__(syntax.RefCreate(node_of(value), here()))


class RefRead(Expr):
    """What a reference holds."""

    def __init__(self, ref: object) -> None:
        super().__init__(syntax.RefRead(node_of(ref), here()))


class RefWrite(Expr):
    """A reference holds another value from here on."""

    def __init__(self, ref: object, value: object) -> None:
        super().__init__(syntax.RefWrite(node_of(ref), node_of(value), here()))
