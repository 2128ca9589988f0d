"""Functions of the host that programs call by name: ``unity.register_function("my.scale", scale)``.

A program names them as external functions, ``script.extern("my.scale", R.Func(...))``, or calls
them by ``R.call_packed("my.scale", x, out=...)``. The name is looked up where a program is linked:
when it is compiled, or loaded from a file. What they are given and give is checked by the declared
types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import signature
from typing import TypeVar, overload

import numpy as np

from unity.arguments import public
from unity.errors import UnityError
from unity.runtime.arrays.accept import accept

from .known import HostRecord

_Function = TypeVar("_Function", bound=Callable[..., object])
_functions: dict[str, Callable[..., object]] = {}


@overload
def register_function(name: str, function: _Function, *, override: bool = False) -> _Function: ...
@overload
def register_function(
    name: str, function: None = None, *, override: bool = False
) -> Callable[[_Function], _Function]: ...
@public
def register_function(
    name: str, function: _Function | None = None, *, override: bool = False
) -> _Function | Callable[[_Function], _Function]:
    """Give a Python function a name by which programs call it; also as a decorator.

    It is called with numpy arrays for tensors (not to
    be written to, and only valid until it returns: copy what is to be kept), Python numbers for
    scalars, tuples of ints for shapes, tuples, texts, numpy dtypes, and other objects as they are.
    It returns such values; arrays are copied.

    Args:
        name: The name, in the form that packages have: ``my.scale``.
        function: The function; left out, a decorator is returned.
        override: Whether the name may be taken from another function. Programs that are compiled
            already keep the one they have.

    Raises:
        UnityError: The name is taken, or no name; or what is registered can't be called.

    >>> import numpy as np
    >>> @register_function("doc.twice", override=True)
    ... def twice(x):
    ...     return x * 2
    >>> registered_function("doc.twice")(np.float32(3)).item()
    6.0
    """
    if not name or name != name.strip():
        raise UnityError(f"{name!r} is no name of a function", hint='a text like "my.scale"')
    if function is None:

        def decorate(f: _Function) -> _Function:
            return register_function(name, f, override=override)

        return public(decorate)
    known = _functions.get(name)
    if known is not None and known is not function and not override:
        raise UnityError(
            f"there is a function {name!r} already", hint="override=True takes its place"
        )
    _functions[name] = function
    return function


def registered_function(name: str) -> Callable[..., object]:
    """The function of a name.

    Raises:
        UnityError: There is none; names those like it.
    """
    found = _functions.get(name)
    if found is not None:
        return found
    near = get_close_matches(name, _functions, 3)
    like = f"; did you mean {', '.join(near)}?" if near else ""
    raise UnityError(
        f"the program calls {name!r}, and no function of that name is registered{like}",
        hint=f"unity.register_function({name!r}, function) before it is compiled, loaded or run",
    )


@dataclass(frozen=True, slots=True)
class RegisteredHost:
    """A registered function as a program calls it."""

    name: str
    function: Callable[..., object]

    def __call__(self, *args: object) -> object:
        """Call it: it sees arrays that it can't write to, and what it returns is the program's.

        Raises:
            UnityError: It takes more or fewer arguments.
        """
        try:
            made = self.function(*map(_lent, args))
        except TypeError as error:
            if _takes(self.function, len(args)):
                raise
            message = f"the program gives {self.name!r} {len(args)} arguments: {error}"
            raise UnityError(message, hint="register a function that takes as many") from error
        return _taken(made, self.name)

    def record(self) -> HostRecord:
        """What finds it again."""
        return HostRecord(__name__, registered_host.__name__, self.name)


def registered_host(name: str) -> RegisteredHost:
    """The function of a name, looked up now.

    Raises:
        UnityError: There is none.
    """
    return RegisteredHost(name, registered_function(name))


def _takes(function: Callable[..., object], count: int) -> bool:
    """Whether a function takes so many arguments, as far as it says."""
    try:
        signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # of one written in C
        return True
    return True


def _lent(value: object) -> object:
    """A value for the function to look at."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    return tuple(map(_lent, value)) if isinstance(value, tuple) else value


def _taken(value: object, name: str) -> object:
    """What a function returned; arrays are copied, as it may keep or have been given them."""
    match value:
        case tuple() | list():
            return tuple(_taken(v, name) for v in value)
        case None:
            return ()
        case np.ndarray() | np.generic():
            return np.array(accept(value, None, f"the result of {name}")[0], copy=True)
        case _ if hasattr(value, "__dlpack__"):
            return np.array(accept(value, None, f"the result of {name}")[0], copy=True)
        case _:
            return value
