"""The Python functions that programs call, as artifacts name them.

A function is found again by the module and the name it was defined under. One that is made at
compile time says itself what makes it again, from a text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast, runtime_checkable

from unity.errors import UnityError
from unity.runtime.vm import Host


@dataclass(frozen=True, slots=True)
class HostRecord:
    """Where a host function is found.

    Attributes:
        module: A module that can be imported.
        name: A name in it, dots included.
        argument: If not empty, that name makes the function from this.
    """

    module: str
    name: str
    argument: str = ""


@runtime_checkable
class Recorded(Protocol):
    """A host function that says how it is made again."""

    def record(self) -> HostRecord:
        """What makes it again."""
        ...


def record_of(host: Host) -> HostRecord | str:
    """How a function is found again, or why it can't be."""
    if isinstance(host, Recorded):
        return host.record()
    name, module = getattr(host, "__qualname__", ""), getattr(host, "__module__", "") or ""
    what = f"the Python function {name or repr(host)}"
    if not name or "<" in name:
        return f"{what} is no function of a module"
    if module == "__main__":
        return f"{what} is defined in the program that was started, not in a module"
    record = HostRecord(module, name)
    try:
        found = host_of(record)
    except UnityError as error:
        return error.message
    return record if found is host else f"{what} is not what {module}.{name} is now"


def host_of(record: HostRecord) -> Host:
    """The function of a record; imports its module.

    Raises:
        UnityError: There is none of that name.
    """
    try:
        found: object = import_module(record.module)
        for part in record.name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise UnityError(
            f"the program calls the Python function {record.module}.{record.name}, which can't be "
            f"imported: {error}",
            hint="make its module importable here",
        ) from error
    if record.argument:
        return cast("Callable[[str], Host]", found)(record.argument)
    return cast("Host", found)
