"""Loops of statements over what is counted or known: for.

One to a size counts when the program runs, as a while loop; one over captured values is written
out. What a loop has counted to is a size where it can't be negative, so that it is a number beside
tensors, an index, an end of a part, an extent.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence

from unity.ir.dims import SymDim, always_ge, as_dim
from unity.ir.dtype import INT64
from unity.ir.graph import Expr
from unity.ir.types import PrimType
from unity.op.call import is_expr

from .graph_loops import Follow, GraphLoops, Leaving
from .leaving.exits import exits, read
from .scope import MISSING


class _Count(ast.expr):
    """What a loop has counted to, as its body sees it.

    Attributes:
        name: What the body calls it.
        count: The loop's state, a tensor.
        least: What it is at least; None if it may be negative.
    """

    _fields = ("count",)

    def __init__(self, name: ast.expr, count: ast.expr, least: int | None) -> None:
        super().__init__()
        self.name, self.count, self.least = name, count, least


def _least(bound: object) -> int | None:
    """What the lowest number of a range is at least; None if it may be negative."""
    if isinstance(bound, int):
        return bound if bound >= 0 else None
    return 0 if isinstance(bound, SymDim) and always_ge(bound, 0) else None


class GraphCounting(GraphLoops):
    """Parses for loops."""

    @abstractmethod
    def while_statement(self, node: ast.While, follow: Follow | None) -> Expr | None:
        """A while loop; gives what is returned from it, or behind it if a return leaves it."""

    def for_loop(self, node: ast.For, live: frozenset[str], follow: Follow | None) -> Expr | None:
        """A loop over captured values is written out; one to a size counts when it runs."""
        self.source.refuse_else(node)
        match node:
            case ast.For(
                ast.Name(),
                ast.Call(ast.Name("range"), [_] | [_, _] | [_, _, _] as bounds, []),
            ):
                values = [self.value(b) for b in bounds]
                if not any(isinstance(v, SymDim) or is_expr(v) for v in values):
                    return self._written_out(node, live, follow)
                result = self.while_statement(self._counting(node, values), follow)
                return result if result is not None or follow is None else follow()
            case _:
                return self._written_out(node, live, follow)

    def _counting(self, node: ast.For, bounds: Sequence[object]) -> ast.While:
        """``for i in range(n)`` as a while loop over a count that the body can't change.

        Where it ends is known before it, as in Python; both have names that no program can use.
        """
        first, end, step = ((0, *bounds, 1), (*bounds, 1), (*bounds,))[len(bounds) - 1]
        if isinstance(step, bool) or not isinstance(step, int) or step == 0:
            raise self.source.error(
                node.iter, "the step of a range must be a number other than 0 that is known"
            )
        begin = self.tensor(node.iter, self.graph(node.iter, first))
        count = ast.Name(self._hidden(node, "count", self.builder.atom(begin)), ast.Load())
        last = self.builder.atom(end) if is_expr(end) else end
        limit = ast.Name(self._hidden(node, "end", last), ast.Load())
        lowest = first if step > 0 else as_dim(end + 1) if isinstance(end, int | SymDim) else None
        taken = ast.Assign([node.target], _Count(node.target, count, _least(lowest)))
        one = ast.BinOp(count, ast.Add(), ast.Constant(step))
        on = ast.Assign([ast.Name(count.id, ast.Store())], one)
        test = ast.Compare(count, [ast.Lt() if step > 0 else ast.Gt()], [limit])
        leaves = any(True for _ in exits(node.body))
        body = [taken, on, *node.body] if leaves else [taken, *node.body, on]
        loop = ast.While(test, body, [])
        for made in ast.walk(loop):
            if isinstance(made, ast.expr | ast.stmt) and not hasattr(made, "lineno"):
                ast.copy_location(made, node.iter)
        return loop

    def value(self, node: ast.expr) -> object:
        """The meaning of an expression."""
        return self._counted(node) if isinstance(node, _Count) else super().value(node)

    def _counted(self, node: _Count) -> object:
        """What a loop has counted to: a size where it can't be negative, else a scalar."""
        number = self.builder.atom(self.scalar(node, self.atom(node.count)))
        if node.least is None:
            return number
        name = ast.unparse(node.name)
        symbol = self.builder.fresh(name, min=node.least)
        self.counters.add(symbol)
        span = self.source.span(node)
        self.builder.match_cast(number, PrimType(INT64, symbol), name, span)
        return symbol

    def _hidden(self, node: ast.For, what: str, value: object) -> str:
        """Bind a value of a loop to a name that nothing else has: a space is in it."""
        name = f"{ast.unparse(node.target)} {what}"
        while self.scope.local(name) is not MISSING:
            name += " "
        self.scope.bind(name, value)
        return name

    def _written_out(
        self, node: ast.For, live: frozenset[str], follow: Follow | None
    ) -> Expr | None:
        values = self.parts(node.iter, self.value(node.iter))
        if not isinstance(values, tuple | list | range):
            raise self.source.error(
                node.iter,
                f"{ast.unparse(node.iter)!r} is nothing that a loop goes through",
                "for goes through range(n), tuples and lists; rows of a tensor: R.scan, or "
                "R.take(x, i, axis=0) for i in range(n)",
            )
        around, live = self.leaving, live | read(node.body)

        def behind() -> Expr | None:
            inside, self.leaving = self.leaving, around
            result = None if follow is None else follow()
            self.leaving = inside
            return result

        def step(k: int) -> Expr | None:
            if k == len(values):
                return behind()
            inside = self.leaving
            self.leaving = Leaving(behind, lambda: step(k + 1), self._on_return(around))
            self._assign(node.target, values[k], node.iter, None)
            result = self.suite(node.body, live, follow=lambda: step(k + 1))
            self.leaving = inside
            return result

        if follow is not None:
            return step(0)
        for value in values:
            self._assign(node.target, value, node.iter, None)
            self.suite(node.body, live)
        return None

    def _on_return(self, around: Leaving | None) -> Callable[[ast.Return, Expr], Expr]:
        return (lambda _, value: value) if around is None else around.on_return
