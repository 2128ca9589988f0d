"""What calls are given: bound to a signature and checked by annotations, with one form of errors.

Comes in: a signature (of a Python function, of an operator's row, of a name of the language) and
what a call gives, by position and by name; the values may be Python's or syntax. Goes out: each
parameter's value, or a `UnityError` that names the one that does not fit. The parser, the table of
operators, TVMScript and every function of the public interface (`public`) bind by this.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from types import FunctionType
from typing import Generic, TypeVar, cast

from unity.annotated import ANYTHING, Kind, kind_of
from unity.errors import Span, UnityError, trim_frames

F = TypeVar("F", bound="Callable[..., object]")
C = TypeVar("C", bound=type)
V = TypeVar("V")
REQUIRED = object()
_LONG = 60


@dataclass(frozen=True, slots=True)
class Named(Generic[V]):
    """An argument given by name, and where."""

    name: str | None
    value: V
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a signature: plain, by name alone, or all the rest by position."""

    name: str
    default: object = REQUIRED
    named_only: bool = False
    rest: bool = False

    def __str__(self) -> str:
        """As a signature says it."""
        if self.rest:
            return f"*{self.name}"
        return self.name if self.default is REQUIRED else f"{self.name}={shown(self.default)}"


@dataclass(frozen=True, slots=True)
class Bound(Generic[V]):
    """What a call gives: parameters by name, and all the rest by position."""

    named: Mapping[str, V]
    rest: tuple[V, ...] = ()


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes."""

    name: str
    params: tuple[Parameter, ...]

    @classmethod
    def of(cls, function: Callable[..., object], name: str = "") -> Signature:
        """The signature of a Python function (of a method without self)."""
        given = list(inspect.signature(function).parameters.values())
        if given and given[0].name == "self":
            given = given[1:]
        params = tuple(
            Parameter(
                p.name,
                REQUIRED if p.default is p.empty else p.default,
                p.kind is p.KEYWORD_ONLY,
                p.kind is p.VAR_POSITIONAL,
            )
            for p in given
            if p.kind is not p.VAR_KEYWORD
        )
        return cls(name or function.__name__, params)

    @classmethod
    def parse(cls, text: str) -> Signature:
        """A signature from its text, ``T.serial(begin, end=None, *, attrs=None)``."""
        name, _, rest = text.partition("(")
        scope: dict[str, Callable[..., object]] = {}
        exec(f"def f({rest}: pass", scope)
        return cls.of(scope["f"], name)

    def bind(
        self, args: Sequence[V], named: Sequence[Named[V]] = (), span: Span | None = None
    ) -> Bound[V]:
        """Each parameter that is given, with its value.

        Raises:
            UnityError: Too many, unknown, repeated or missing arguments.
        """
        plain = [p for p in self.params if not p.named_only and not p.rest]
        rest = next((p for p in self.params if p.rest), None)
        if len(args) > len(plain) and rest is None:
            many = len(plain)
            what = "argument" if many == 1 else "arguments"
            raise UnityError(f"{self.name} takes {many} {what}, got {len(args)}", span, self.usage)
        found = {p.name: value for p, value in zip(plain, args, strict=False)}
        known = {p.name for p in self.params if not p.rest}
        for each in named:
            if each.name is None:
                raise UnityError(f"{self.name}: ** can't be used here", each.span, self.usage)
            if each.name not in known:
                message = f"{self.name} has no parameter {each.name!r}"
                raise UnityError(message, each.span or span, self.usage)
            if each.name in found:
                message = f"{self.name} got {each.name!r} twice"
                raise UnityError(message, each.span or span, self.usage)
            found[each.name] = each.value
        for p in self.params:
            if p.default is REQUIRED and not p.rest and p.name not in found:
                raise UnityError(f"{self.name} needs {p.name!r}", span, self.usage)
        return Bound(found, tuple(args[len(plain) :]))

    @property
    def usage(self) -> str:
        """The signature, for messages."""
        parts: list[str] = []
        for k, p in enumerate(self.params):
            if p.named_only and not any(q.named_only or q.rest for q in self.params[:k]):
                parts.append("*")
            parts.append(str(p))
        return f"{self.name}({', '.join(parts)})"


class _Plan:
    """How the arguments of a public function are checked; made at its first call."""

    def __init__(
        self, function: Callable[..., object], kinds: Mapping[str, Kind], hints: Mapping[str, str]
    ) -> None:
        self.method = next(iter(inspect.signature(function).parameters), "") == "self"
        self.name = function.__name__
        if self.name == "__init__":
            self.name = function.__qualname__.split(".")[-2]
        self.signature = Signature.of(function, self.name)
        own = list(inspect.signature(function).parameters.values())[self.method :]
        scope = cast("dict[str, object]", getattr(inspect.unwrap(function), "__globals__", {}))
        self.kinds = {
            p.name: ANYTHING if p.annotation is p.empty else kind_of(p.annotation, scope, kinds)
            for p in own
        }
        self.extra = next((p.name for p in own if p.kind is p.VAR_KEYWORD), None)
        self.rest = next((p.name for p in own if p.kind is p.VAR_POSITIONAL), None)
        self.hints = hints
        plain = [p for p in own if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.tests = [(p.name, self.kinds[p.name].fits) for p in plain]
        self.least = sum(p.default is p.empty for p in plain)
        self.most = len(plain)
        needs = any(p.default is p.empty and p.kind is p.KEYWORD_ONLY for p in own)
        self.quick = self.rest is None and not needs
        self.places = {p.name: k + 1 for k, p in enumerate(own)}

    def check(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        """Refuse what does not fit.

        Raises:
            UnityError: An argument is missing, unknown or of another type.
        """
        own = args[1:] if self.method else args
        if self.quick and not kwargs and self.least <= len(own) <= self.most:
            for (name, fits), value in zip(self.tests, own, strict=False):
                if not fits(value):
                    raise self._wrong(name, value)
            return
        given = [Named(k, v) for k, v in kwargs.items()]
        if self.extra is not None:
            known = {p.name for p in self.signature.params}
            for each in given:
                if each.name not in known and not self.kinds[self.extra].fits(each.value):
                    raise self._wrong(str(each.name), each.value, self.extra)
            given = [g for g in given if g.name in known]
        bound = self.signature.bind(own, given)
        rest = [(self.rest, value) for value in bound.rest if self.rest is not None]
        for name, value in [*bound.named.items(), *rest]:
            if not self.kinds[name].fits(value):
                raise self._wrong(name, value)

    def _wrong(self, name: str, value: object, kind: str = "") -> UnityError:
        wanted = self.kinds[kind or name].words
        where = f"{self.name}, argument {self.places.get(name, 0)} {name!r}"
        if name not in self.places:
            where = f"{self.name}, argument {name!r}"
        hint = self.hints.get(wanted) or f"usage: {self.signature.usage}"
        return UnityError(f"{where}: expected {wanted}, got {shown(value)}", hint=hint)


def public(
    function: F,
    kinds: Mapping[str, Kind] | None = None,
    hints: Mapping[str, str] | None = None,
    *,
    late: bool = False,
) -> F:
    """A function of the public interface: it refuses arguments that its annotations don't name.

    What it raises for a mistake shows the user's own lines: frames of ours are cut off the
    traceback (see `unity.errors.trim_frames`).

    Args:
        function: The function, or a method.
        kinds: What further names in its annotations stand for.
        hints: What to do, by what was expected.
        late: Whether arguments are looked at only when the call failed on their type or number:
            for functions that a model's every step calls.
    """

    @cache
    def plan() -> _Plan:
        return _Plan(function, kinds or {}, hints or {})

    @wraps(function)
    def call(*args: object, **kwargs: object) -> object:
        try:
            plan().check(args, kwargs)
            return function(*args, **kwargs)
        except UnityError as error:
            trim_frames(error, code)
            raise

    @wraps(function)
    def call_first(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except UnityError as error:
            trim_frames(error, code)
            raise
        except TypeError as error:
            refused = _refused(plan(), args, kwargs)
            if refused is None:
                raise
            trim_frames(refused, code)
            raise refused from error

    made = cast("FunctionType", call_first if late else call)
    code = made.__code__
    made.__dict__["plan"] = plan
    return cast("F", made)


def _refused(
    plan: _Plan, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> UnityError | None:
    """What is wrong with arguments, if anything is."""
    try:
        plan.check(args, kwargs)
    except UnityError as error:
        return error
    return None


def expectations(function: object) -> Mapping[str, Kind] | None:
    """What each parameter of a public function expects; None if it is none."""
    plan = getattr(function, "plan", None)
    return None if plan is None else cast("Mapping[str, Kind]", plan().kinds)


def public_class(definition: C, kinds: Mapping[str, Kind] | None = None) -> C:
    """A class of the public interface: its constructor, methods and what its properties are set to.

    Methods that are marked `public` already stay as they are; special ones are left alone.

    Args:
        definition: The class.
        kinds: What names and texts in its annotations stand for, beyond their own meaning.
    """
    for name, found in list(vars(definition).items()):
        if name == "__init__" or not name.startswith("_"):
            marked = _marked(found, kinds)
            if marked is not found:
                setattr(definition, name, marked)
    return definition


def _marked(found: object, kinds: Mapping[str, Kind] | None) -> object:
    """An entry of a class, public if it is a method."""
    match found:
        case FunctionType() if expectations(found) is None:
            return public(found, kinds)
        case staticmethod():
            return staticmethod(public(cast("Callable[..., object]", found.__func__), kinds))
        case property(fset=FunctionType() as setter):
            return found.setter(public(setter, kinds))
        case _:
            return found


def shown(value: object) -> str:
    """A value in a message, shortly."""
    text = str(value) if type(value).__name__ == "DType" else repr(value)
    return text if len(text) <= _LONG and "\n" not in text else f"a {type(value).__name__}"
