"""What a decorator leaves in place of a function: its IR, what it names, and calls on arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, overload
from weakref import WeakValueDictionary

from unity.arguments import public, public_class, shown
from unity.errors import UnityError, trim_frames
from unity.ir.attrs import Attrs
from unity.ir.graph import Binding, Body, Expr, Function, FunctionRef
from unity.ir.module import Definition, ExternFunc, IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.types import FuncType
from unity.ir.visit import map_body, map_expr
from unity.ir.visiting.visit_graph import map_bodies
from unity.op.registry import attr_value

from .printer import html, show

P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)
ArrayLike: TypeAlias = object
"""numpy arrays, anything with DLPack, numbers."""


class Compiler(Protocol):
    """Turns a module into something that runs; `unity.compilation` provides it."""

    def __call__(self, module: IRModule, name: str, /) -> Callable[..., object]:
        """What runs the function `name`.

        Of a graph function: takes its arguments, returns its results. Of a prim func: takes every
        parameter in order and writes the outputs in place.
        """
        ...


_compilers: list[Compiler] = []


@public
def set_compiler(compiler: Compiler) -> None:
    """Say how decorated functions run when they are called with arrays."""
    _compilers[:] = [compiler]


@dataclass(slots=True)
class _Runner:
    """What runs a program, made at its first call."""

    run: Callable[..., object] | None = None

    def call(self, program: Program, args: Sequence[object], named: Mapping[str, object]) -> object:
        if self.run is None:
            if not _compilers:
                import_module("unity.compilation")  # by name: it is a floor above, and sets itself
            module, name = _linked([program])
            self.run = _compilers[0](module, name[0])
        return self.run(*args, **named)


@public_class
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class ScriptPrimFunc(Generic[P]):
    """A prim func written with ``@script.prim_func``."""

    name: str
    func: PrimFunc
    _runner: _Runner = field(default_factory=_Runner, repr=False)

    def __repr__(self) -> str:
        """Its name and what it takes, in a line; `show` prints all of it."""
        params = ", ".join(p.name for p in self.func.params)
        return f"<kernel {self.name}({params})>"

    @property
    def __name__(self) -> str:
        """Its name, as Python's functions have it."""
        return self.name

    def module(self) -> IRModule:
        """A module of this function alone."""
        return module(self)

    def show(self) -> None:
        """Print it."""
        show(self.module())

    def _repr_html_(self) -> str:
        return html(self.module())

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None: ...
    @overload
    def __call__(self, *args: ArrayLike) -> None: ...
    def __call__(self, *args: object, **kwargs: object) -> None:
        """Run it on arrays: inputs, then outputs, which are written. Compiled at the first call."""
        try:
            self._runner.call(self, args, kwargs)
        except UnityError as error:
            trim_frames(error, ScriptPrimFunc.__call__.__code__)
            raise


_plain: WeakValueDictionary[int, ScriptPrimFunc[...]] = WeakValueDictionary()
"""Kernels that nobody decorated, by their identity, as programs name them."""


def as_program(name: str, func: PrimFunc) -> ScriptPrimFunc[...]:
    """A prim func made otherwise, by te or a schedule, as if it were decorated.

    Args:
        name: What it is called, where it is named for the first time.
        func: The kernel; the same one is the same program.
    """
    found = _plain.get(id(func))
    if found is None:
        found = _plain[id(func)] = ScriptPrimFunc(name, func)
    return found


@public_class
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScriptFunction(Generic[P, T_co]):
    """A graph function written with ``@script.function``.

    `refers` holds the decorated functions that `func` names.
    """

    name: str
    func: Function
    refers: Mapping[str, Program]
    _runner: _Runner = field(default_factory=_Runner, repr=False)

    def __repr__(self) -> str:
        """Its name and type in a line; `show` prints all of it."""
        params = ", ".join(f"{p.name}: {p.type}" for p in self.func.params)
        return f"<graph function {self.name}({params}) -> {self.func.result}>"

    @property
    def __name__(self) -> str:
        """Its name, as Python's functions have it."""
        return self.name

    def module(self) -> IRModule:
        """The module of this function and everything it names."""
        return module(self)

    def show(self) -> None:
        """Print it and everything it names."""
        show(self.module())

    def _repr_html_(self) -> str:
        return html(self.module())

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...
    @overload
    def __call__(self, *args: ArrayLike, **kwargs: ArrayLike) -> object: ...
    def __call__(self, *args: object, **kwargs: object) -> object:
        """Run it on arrays; compiled at the first call."""
        try:
            return self._runner.call(self, args, kwargs)
        except UnityError as error:
            trim_frames(error, ScriptFunction.__call__.__code__)
            raise


@public_class
@dataclass(frozen=True, slots=True)
class ScriptExtern:
    """A function of the host, as graph functions call it; see `extern`."""

    name: str
    func: ExternFunc

    def __call__(self, *_args: ArrayLike) -> Any:
        """Refuse: the parser reads these calls, Python never runs them.

        Raises:
            UnityError: Always.
        """
        raise UnityError(
            f"{self.func.symbol!r} is called by programs, not by Python",
            hint="write the call inside a function decorated with @script.function",
        )


@public
def extern(symbol: str, type: FuncType) -> ScriptExtern:
    """Declare a function of the host that graph functions may call.

    What it is given and what it returns is checked by the declared types when it is called. Calls
    stay in the order in which they are written, and none is removed, unless its type says that it
    is pure.

    Args:
        symbol: The name that `unity.register_function` gives it, ``my.scale``.
        type: What it takes and returns: ``R.Func([f32[Tensor, n]], f32[Tensor, n], False)``; the
            last is whether it is pure. `R.Object` is any value.
    """
    return ScriptExtern(extern_name(symbol), ExternFunc(symbol, type))


def extern_name(symbol: str) -> str:
    """What a function of the host is called in a program: ``my.scale`` is ``my_scale``."""
    return re.sub(r"\W+", "_", symbol, flags=re.ASCII).strip("_") or "extern"


@dataclass(frozen=True, slots=True, eq=False)
class ScriptForward:
    """A decorated function that is defined below one that calls it.

    Attributes:
        name: What it is called.
        func: What stands for it where its caller is checked: its declared type.
        params: What its parameters are called.
        find: Gives what the name means by now; None if there is nothing yet.
    """

    name: str
    func: ExternFunc
    params: tuple[str, ...]
    find: Callable[[], object]

    def found(self) -> ScriptFunction[..., object]:
        """The function.

        Raises:
            UnityError: It is not there yet, or not what it was declared to be.
        """
        made, told = self.find(), self.func.type
        if not isinstance(made, ScriptFunction):
            raise UnityError(
                f"{self.name!r} is called by a function above it, and is not defined yet",
                hint="make the module, and call its functions, below all of them",
            )
        f = made.func
        kind = FuncType(tuple(p.type for p in f.params), f.result, f.pure)
        if (kind.params, kind.result) != (told.params, told.result):
            raise UnityError(
                f"{self.name!r} is {kind}, a function above it was told that it is {told}",
                hint="define it once",
            )
        if told.pure and not f.pure:
            raise UnityError(
                f"{self.name!r} has effects, which a function above it, that calls it, can't know",
                hint="say so where it is defined: @script.function(pure=False)",
            )
        return made


Program: TypeAlias = (
    "ScriptFunction[..., object] | ScriptPrimFunc[...] | ScriptExtern | ScriptForward"
)


@public
def module(*programs: Program, attrs: Mapping[str, object] | None = None) -> IRModule:
    """The module of some decorated functions and everything they name.

    Two different functions of one name are told apart by a number: ``scale``, ``scale_1``.

    Args:
        programs: The functions.
        attrs: Attributes of the module: numbers, texts, dims, or tuples of such.
    """
    made = _linked(programs)[0]
    if not attrs:
        return made
    return replace(made, attrs=Attrs({name: attr_value(value) for name, value in attrs.items()}))


def _linked(programs: Sequence[Program]) -> tuple[IRModule, list[str]]:
    """The module and the names of the given programs in it."""
    names: dict[Program, str] = {}
    order: list[Program] = []
    for program in programs:
        if not isinstance(program, ScriptFunction | ScriptPrimFunc | ScriptExtern | ScriptForward):
            raise UnityError(
                f"a module is made of decorated functions, got {shown(program)}",
                hint="decorate it with @script.function or @script.prim_func; "
                'of what is IR already, unity.IRModule({"name": function}) makes one',
            )
        names.setdefault(program, _free(program.name, names))
    seen: set[Program] = set()
    for program in programs:
        _collect(program, names, order, seen)
    if programs and any(programs[0] in _refers(p) for p in order):
        order.sort(key=lambda p: p is not programs[0])  # nothing else tells that it is the main one
    return IRModule({names[p]: _definition(p, names) for p in order}), [names[p] for p in programs]


def _free(name: str, names: Mapping[Program, str]) -> str:
    taken, found, count = set(names.values()), name, 0
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found


def _collect(
    program: Program, names: dict[Program, str], order: list[Program], seen: set[Program]
) -> None:
    """Callees first; functions that call each other by who comes first."""
    if program in seen:
        return
    seen.add(program)
    for other in _refers(program):
        if other not in names:
            names[other] = _free(other.name, names)
        _collect(other, names, order, seen)
    order.append(program)


def _refers(program: Program) -> list[Program]:
    """What a program names."""
    found = program.refers.values() if isinstance(program, ScriptFunction) else ()
    return [_known(other) for other in found]


def _known(program: Program) -> Program:
    return program.found() if isinstance(program, ScriptForward) else program


def _definition(program: Program, names: Mapping[Program, str]) -> Definition:
    if not isinstance(program, ScriptFunction):
        return program.func
    renamed = {local: names[_known(other)] for local, other in program.refers.items()}
    renamed[program.name] = names[program]
    changed = {old: new for old, new in renamed.items() if old != new}
    return with_names(program.func, changed) if changed else program.func


def with_names(function: Function, names: Mapping[str, str]) -> Function:
    """A function that names others as they are called in another module."""

    def on_expr(e: Expr) -> Expr:
        if isinstance(e, FunctionRef):
            return FunctionRef(names[e.name], e.span) if e.name in names else e
        return map_bodies(map_expr(e, on_expr), on_body)

    def on_binding(binding: Binding) -> Binding:
        value = on_expr(binding.value)
        return binding if value is binding.value else replace(binding, value=value)

    def on_body(body: Body) -> Body:
        return map_body(body, on_binding, on_expr)

    return replace(function, body=on_body(function.body))
