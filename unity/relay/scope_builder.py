"""`ScopeBuilder`: lets and branches written one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from unity.errors import UnityError

from .expr import Expr, If, Let, Var, node_of, wrap
from .places import here


class ScopeBuilder:
    """Builds an expression of lets.

    >>> from unity import relay
    >>> sb = relay.ScopeBuilder()
    >>> x = relay.var("x", "float32")
    >>> y = sb.let("y", relay.exp(x))
    >>> sb.ret(relay.add(y, y))
    >>> print(sb.get())
    %0 = exp(%x);
    let %y = %0;
    %1 = add(%y, %y);
    %1
    """

    def __init__(self) -> None:
        self._lets: list[list[tuple[Var, Expr]]] = [[]]
        self._values: list[Expr | None] = [None]
        self._pending: tuple[Expr, Expr] | None = None

    def let(self, var: Var | str, value: object) -> Var:
        """Bind a variable."""
        bound = Var(var) if isinstance(var, str) else var
        self._lets[-1].append((bound, wrap(node_of(value))))
        return bound

    def ret(self, value: object) -> None:
        """The value of this scope."""
        if self._values[-1] is not None:
            raise UnityError("ret is said once", here())
        self._values[-1] = wrap(node_of(value))

    @contextmanager
    def if_scope(self, cond: object) -> Iterator[None]:
        """The branch taken if a condition holds; `else_scope` follows."""
        self._enter()
        yield
        self._pending = (wrap(node_of(cond)), self._leave())

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """The other branch."""
        self._enter()
        yield
        if self._pending is None:
            raise UnityError("else_scope follows an if_scope", here())
        cond, then = self._pending
        self.ret(If(cond, then, self._leave()))

    def get(self) -> Expr:
        """The expression."""
        value = self._values[-1]
        if value is None:
            raise UnityError("the scope has no value", here(), "sb.ret(value)")
        for var, bound in reversed(self._lets[-1]):
            value = Let(var, bound, value)
        return value

    def _enter(self) -> None:
        self._lets.append([])
        self._values.append(None)

    def _leave(self) -> Expr:
        found = self.get()
        self._lets.pop()
        self._values.pop()
        return found
