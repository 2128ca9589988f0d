"""The Python functions that programs call, as artifacts name them.

A function is named by its module and the name it was defined under. One that is made at compile
time says itself what makes it again, from a text. What an artifact names is looked up among the
functions that the program which loads it knows: those it names then, those that were provided or
registered by a name (`registered.py`), and our own. Nothing is imported because a file says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from unity.arguments import public
from unity.errors import UnityError
from unity.runtime.vm import Host

Key: TypeAlias = tuple[str, str]
"""A function's module and name."""
_Function = TypeVar("_Function", bound=Callable[..., object])
_OURS: frozenset[Key] = frozenset(
    {("unity.codegen.vm.hosts", "op_host"), ("unity.runtime.hosts.registered", "registered_host")}
)


@dataclass(frozen=True, slots=True)
class HostRecord:
    """Which function is called.

    Attributes:
        module: The module that defines it.
        name: Its name there, dots included.
        argument: If not empty, that name makes the function from this.
    """

    module: str
    name: str
    argument: str = ""

    def __str__(self) -> str:
        """What it is called in messages."""
        return f"{self.module}.{self.name}"


@runtime_checkable
class Recorded(Protocol):
    """A host function that says how it is made again."""

    def record(self) -> HostRecord:
        """What makes it again."""
        ...


_provided: dict[Key, Host] = {}


@public
def provide_host(function: _Function) -> _Function:
    """Let executables that are loaded from now on call a function; also as a decorator.

    Raises:
        UnityError: It is no function of a module, by whose name it could be found.
    """
    _provided[_key(function)] = function
    return function


def known_hosts(named: Iterable[Callable[..., object]] = ()) -> Mapping[Key, Host]:
    """The functions that were provided, and those named.

    Raises:
        UnityError: What is named is no function.
    """
    if isinstance(named, str) or not isinstance(named, Iterable):
        raise UnityError(
            f"hosts={named!r}", hint="a list of the functions that the executable may call"
        )
    return {**_provided, **{_key(function): function for function in named}}


def is_known(record: HostRecord, known: Mapping[Key, Host]) -> bool:
    """Whether a record names a function of ours or of those known."""
    return (record.module, record.name) in known or (record.module, record.name) in _OURS


def host_of(record: HostRecord, known: Mapping[Key, Host]) -> Host:
    """The function of a record, which `is_known`.

    Raises:
        UnityError: What makes it can't.
    """
    key = (record.module, record.name)
    found = known[key] if key in known else vars(import_module(record.module))[record.name]
    if not record.argument:
        return cast("Host", found)
    return cast("Callable[[str], Host]", found)(record.argument)


def record_of(host: Host) -> HostRecord | str:
    """How a function is named, or why it can't be."""
    if isinstance(host, Recorded):
        return host.record()
    try:
        module, name = _key(host)
    except UnityError as error:
        return error.message
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not host:
        return f"the Python function {name} is not what {module}.{name} is now"
    return HostRecord(module, name)


def _key(function: object) -> Key:
    """What a function is found by."""
    name: object = getattr(function, "__qualname__", "")
    module: object = getattr(function, "__module__", "")
    if not isinstance(name, str) or not name or not isinstance(module, str) or not module:
        raise UnityError(f"{function!r} is no Python function of a module")
    if not callable(function) or "<" in name:
        raise UnityError(f"the Python function {name} is no function of a module")
    return module, name
