"""Frozen nodes made and compared at half the price: passes make and compare millions of them.

A frozen dataclass sets its fields by ``object.__setattr__``, which looks each of them up by name;
here each is set by its slot's own descriptor. It compares by tuples of all fields, made for it;
here the first that differs ends it, and a node is equal to itself at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from types import FunctionType
from typing import Any, TypeAlias, TypeVar, cast

T = TypeVar("T")
Finds: TypeAlias = "str | Callable[..., object]"
"""An attribute of a field (``"a.dtype"``), or a function of all fields."""
NO_FINDS: Mapping[str, Finds] = {}


def quick_init(
    cls: type[T], *, found: Mapping[str, Finds] = NO_FINDS, later: Sequence[str] = ()
) -> type[T]:
    """A dataclass with slots, its constructor and ``==`` quicker ones that take and do the same.

    Args:
        cls: The class.
        found: Slots besides the fields, which its bases have, and what finds each of them.
        later: Such slots that begin as None: to ask for one that was never set costs more than to
            make the node.

    Raises:
        TypeError: A field has a factory, or the class does something after its fields are set.

    >>> from dataclasses import dataclass
    >>> @quick_init
    ... @dataclass(frozen=True, slots=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(y=3, x=2)
    (Point(x=1, y=0), Point(x=2, y=3))
    >>> Point(1) == Point(1), Point(1) == Point(2), Point(1) == 1
    (True, False, False)
    """
    names: dict[str, object] = {}
    params: list[str] = []
    sets: list[str] = []
    for field in fields(cast("Any", cls)):
        if field.default_factory is not MISSING or hasattr(cls, "__post_init__"):
            raise TypeError(f"{cls.__name__}.{field.name} is more than set")
        default = ""
        if field.default is not MISSING:
            names[f"default_{field.name}"] = field.default
            default = f"=default_{field.name}"
        names[f"set_{field.name}"] = vars(cls)[field.name].__set__
        params.append(f"{field.name}{default}")
        sets.append(f"    set_{field.name}(self, {field.name})\n")
    passed = ", ".join(f.name for f in fields(cast("Any", cls)))
    for name, finds in found.items():
        names[f"set_{name}"] = setter(cls, name)
        if not isinstance(finds, str):
            names[f"find_{name}"] = finds
            finds = f"find_{name}({passed})"
        sets.append(f"    set_{name}(self, {finds})\n")
    for name in later:
        names[f"set_{name}"] = setter(cls, name)
        sets.append(f"    set_{name}(self, None)\n")
    _define(cls, f"def __init__(self, {', '.join(params)}):\n{''.join(sets)}", names)
    if vars(cls)["__dataclass_params__"].eq:
        compared = [f.name for f in fields(cast("Any", cls)) if f.compare]
        same = [f"(self.{n} is other.{n} or self.{n} == other.{n})" for n in compared]
        _define(
            cls,
            "def __eq__(self, other):\n"
            "    if self is other:\n"
            "        return True\n"
            "    if other.__class__ is not self.__class__:\n"
            "        return NotImplemented\n"
            f"    return {' and '.join(same) or True}\n",
            {},
        )
    return cls


def setter(cls: type, slot: str) -> Callable[[object, object], None]:
    """What sets a slot of a frozen node, in half the time of ``object.__setattr__``.

    >>> from unity.ir.prim_expr import PrimVar
    >>> i = PrimVar("i")
    >>> setter(PrimVar, "order")(i, "first")
    >>> i.order
    'first'
    """
    return cast("Callable[[object, object], None]", getattr(cls, slot).__set__)


def _define(cls: type, text: str, names: dict[str, object]) -> None:
    """Give a class a method."""
    before = set(names)
    exec(text, names)
    (name,) = names.keys() - before - {"__builtins__"}
    made = cast("FunctionType", names[name])
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    type.__setattr__(cls, name, made)
