"""What a macro is, and what its decorators take."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, overload

from unity.arguments import REQUIRED, Parameter, Signature, public
from unity.errors import UnityError

from ..parser.scope import MISSING, captured_by
from ..parser.source import Source, of_function
from .names import free_names

P = ParamSpec("P")
T = TypeVar("T")
SCRIPT = "script.macro"
TVMSCRIPT: Mapping[str, str] = {"T.macro": "kernel", "T.inline": "kernel", "R.macro": "graph"}
"""TVMScript's decorators, and where what they decorate is called."""


@dataclass(frozen=True, slots=True)
class Local:
    """Where a macro stands that is defined within a function.

    Attributes:
        visible: The function's names that it sees, which may be bound by when it is called.
        macros: Macros that it sees.
    """

    visible: frozenset[str]
    macros: Mapping[str, ScriptMacro[..., Any]]


@dataclass(frozen=True, slots=True, eq=False)
class ScriptMacro(Generic[P, T]):
    """A macro: what a call of it puts in place of itself.

    Attributes:
        name: What it is called.
        spelling: Its decorator, which says what language it is written in.
        source: Where it is written.
        node: Its definition.
        names: What names mean that it does not bind, innermost first.
        hygienic: Whether those are meant, or what the same names mean where it is called.
        local: Where it stands, if that is in a function.
    """

    name: str
    spelling: str
    source: Source = field(repr=False)
    node: ast.FunctionDef = field(repr=False)
    names: Sequence[Mapping[str, object]] = field(default=(), repr=False)
    hygienic: bool = True
    local: Local | None = field(default=None, repr=False)

    def __call__(self, *_args: P.args, **_named: P.kwargs) -> T:
        """Refuse: the parser puts macros in place, Python never runs them.

        Raises:
            UnityError: Always.
        """
        raise UnityError(
            f"{self.name!r} is a macro: calls of it are put in place in programs, not run",
            hint="call it inside a function decorated with @script.prim_func or @script.function",
        )

    def signature(self) -> Signature:
        """What it takes; defaults are as they are written.

        Raises:
            UnityError: It takes ``*args`` or ``**kwargs``.
        """
        given = self.node.args
        for rest in (given.vararg, given.kwarg):
            if rest is not None:
                raise self.source.error(rest, "a macro's parameters are plain: no * and no **")
        plain = [*given.posonlyargs, *given.args]
        without = len(plain) - len(given.defaults)
        params = [
            Parameter(arg.arg, REQUIRED if k < without else Written(given.defaults[k - without]))
            for k, arg in enumerate(plain)
        ]
        for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            said = REQUIRED if default is None else Written(default)
            params.append(Parameter(arg.arg, said, named_only=True))
        return Signature(self.name, tuple(params))

    def lookup(self, name: str) -> object:
        """What a name means where it is defined, or `MISSING`."""
        return next((names[name] for names in self.names if name in names), MISSING)


@dataclass(frozen=True, slots=True)
class Written:
    """An expression of a definition; messages show its text."""

    node: ast.expr

    def __repr__(self) -> str:
        """Its text."""
        return ast.unparse(self.node)


def decorated(source: Source, node: ast.FunctionDef, spellings: Sequence[str]) -> str | None:
    """The decorator of a macro; None if the definition is none.

    Args:
        source: For errors.
        node: The definition.
        spellings: The decorators that are known.

    Raises:
        UnityError: It has further decorators.
    """
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        path = ast.unparse(called)
        if path in spellings:
            if len(node.decorator_list) > 1:
                raise source.error(node.decorator_list[1], f"{path} stands alone above a def")
            return path
    return None


def is_hygienic(source: Source, node: ast.FunctionDef, spelling: str) -> bool:
    """What the decorator of a definition says of its names.

    Raises:
        UnityError: It has other options.
    """
    (decorator,) = node.decorator_list
    if not isinstance(decorator, ast.Call):
        return True
    for extra in decorator.args:
        raise source.error(extra, f"{spelling} takes its options by name")
    found = True
    for option in decorator.keywords:
        if option.arg != "hygienic" or spelling == "T.inline":
            takes = "nothing" if spelling == "T.inline" else "hygienic"
            raise source.error(
                option, f"{spelling} has no parameter {option.arg!r}", f"it takes {takes}"
            )
        if not isinstance(option.value, ast.Constant) or not isinstance(option.value.value, bool):
            said = ast.unparse(option.value)
            raise source.error(
                option.value, f"{spelling}: 'hygienic' must be True or False, got {said}"
            )
        found = option.value.value
    return found


def of_definition(
    source: Source, node: ast.FunctionDef, spelling: str, names: Sequence[Mapping[str, object]]
) -> ScriptMacro[..., Any]:
    """The macro of a definition in a text, or in a function's body.

    Raises:
        UnityError: Its decorator has unknown options.
    """
    hygienic = is_hygienic(source, node, spelling)
    return ScriptMacro(node.name, spelling, source, node, names, hygienic)


def of_python(
    definition: Callable[P, T],
    spelling: str,
    hygienic: bool,
    names: Sequence[Mapping[str, object]] | None = None,
) -> ScriptMacro[P, T]:
    """The macro of a Python function, whose free names keep what they mean now.

    Args:
        definition: The function.
        spelling: Its decorator.
        hygienic: As `ScriptMacro`.
        names: What it sees; None for all that Python lets it see.

    Raises:
        UnityError: It is no function, or its text is not known.
    """
    if not isinstance(definition, FunctionType):
        raise UnityError(f"{spelling} takes a plain function, got {definition!r}")
    source, node = of_function(definition)
    seen = captured_by(definition) if names is None else names
    now: dict[str, object] = {}
    for name in free_names(node):
        found = next((known[name] for known in seen if name in known), MISSING)
        if found is not MISSING:
            now[name] = found
    made: ScriptMacro[P, T] = ScriptMacro(node.name, spelling, source, node, [now, *seen], hygienic)
    now[node.name] = made
    return made


@overload
def macro(definition: Callable[P, T], /) -> ScriptMacro[P, T]: ...
@overload
def macro(*, hygienic: bool = True) -> Callable[[Callable[P, T]], ScriptMacro[P, T]]: ...
@public
def macro(
    definition: Callable[P, T] | None = None, /, *, hygienic: bool = True
) -> ScriptMacro[P, T] | Callable[[Callable[P, T]], ScriptMacro[P, T]]:
    """Make a macro of a Python function: a piece of programs, put in place where it is called.

    In a prim func a call of it is a statement; parameters stand for what is given: buffers,
    expressions, numbers, texts, other macros. In a graph function a call of it is a value, that of
    the ``return`` at its end. A condition on what is known while parsing is decided then, so a
    macro may choose by a text, and call itself a known number of times.

    Args:
        definition: The Python function; its text is read, it is never run.
        hygienic: Whether names that it does not bind mean what they mean where it is defined, at
            that time; if not, what they mean where it is called.

    Raises:
        UnityError: It is no plain function, or its text is not known.
    """
    if definition is None:

        def decorate(f: Callable[P, T]) -> ScriptMacro[P, T]:
            return of_python(f, SCRIPT, hygienic)

        return public(decorate)
    return of_python(definition, SCRIPT, True)


__all__ = [
    "SCRIPT",
    "TVMSCRIPT",
    "Local",
    "ScriptMacro",
    "Written",
    "decorated",
    "is_hygienic",
    "macro",
    "of_definition",
    "of_python",
]
