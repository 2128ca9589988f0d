"""Names and modules imported when they are first used: what is not needed costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def exports(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The ``__getattr__`` of a package, which imports a name from its home.

    Args:
        package: The package's ``__name__``.
        homes: In which module of the package each name is defined: ``"parse": ".parser.text"``.

    >>> find = exports("unity", {"imm": ".ir.prim_expr"})
    >>> find("imm")(3)
    Imm(value=3, dtype=DType(name='int64', lanes=1))
    """

    def find(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home, package), name)

    return find


class Deferred:
    """A module that is imported when something of it is first asked for.

    To a type checker it is the module itself::

        if TYPE_CHECKING:
            import sympy
        else:
            sympy = Deferred("sympy")

    >>> fractions = Deferred("fractions")
    >>> fractions.Fraction(1, 2)
    Fraction(1, 2)
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        """Something of the module, which is this one's own from then on."""
        if name.startswith("__"):
            raise AttributeError(name)
        value: object = getattr(import_module(self._name), name)
        self.__dict__[name] = value
        return value
