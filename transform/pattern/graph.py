"""A graph function as patterns see it: what each variable is bound to, and who uses it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from unity.ir.graph import Binding, Call, Expr, Function, Op, Var, VarBinding
from unity.ir.visiting.visit_graph import free_vars, graph_children

_FARTHEST = 40
"""Variables behind each other that may be computed together."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Index of a function's own bindings, those of nested bodies left out.

    Attributes:
        function: The function.
        values: What each variable is bound to, in order; as a rule, of dataflow blocks only.
        users: The variables whose right sides use a variable; nested bodies count as using.
        results: The variables that the result needs.
    """

    function: Function
    values: dict[Var, Expr]
    users: dict[Var, list[Var]]
    results: frozenset[Var]

    @classmethod
    def of(cls, function: Function, everywhere: bool = False) -> Graph:
        """The index of a function.

        Args:
            function: The function.
            everywhere: Whether values outside of dataflow blocks may be matched as well.
        """
        values: dict[Var, Expr] = {}
        users: dict[Var, list[Var]] = defaultdict(list)
        for block in function.body.blocks:
            for binding in block.bindings:
                if (everywhere or block.dataflow) and isinstance(binding, VarBinding):
                    values[binding.var] = binding.value
                for var in free_vars(binding.value):
                    users[var].append(binding.var)
        return cls(function, values, dict(users), frozenset(free_vars(function.body.result)))

    def bindings(self) -> Iterator[Binding]:
        """All bindings, in order."""
        for block in self.function.body.blocks:
            yield from block.bindings

    def value(self, e: Expr) -> Expr:
        """What an expression is: a variable's value, or itself."""
        return self.values.get(e, e) if isinstance(e, Var) else e

    def using(self, var: Var) -> list[Var]:
        """The variables computed from a variable directly."""
        return self.users.get(var, [])

    def computed_with(self, var: Var, names: Collection[str]) -> str | None:
        """Which of some variables a variable is computed with.

        Itself, or the one that it alone goes into: bias and activation behind a product.

        Args:
            var: The variable.
            names: Of variables that have a kernel of their own.
        """
        for _ in range(_FARTHEST):
            if var.name in names:
                return var.name
            users = self.using(var)
            if len(users) != 1:
                return None
            var = users[0]
        return None

    def ops_using(self, var: Var) -> set[str]:
        """The ops that use a variable; ``return`` for the function's result, ``?`` for all else."""
        found = {"return"} if var in self.results else set[str]()
        for user in self.using(var):
            match self.values.get(user):
                case Call(Op(name)):
                    found.add(name)
                case _:
                    found.add("?")
        return found

    def operands(self, e: Expr) -> list[Var]:
        """The variables directly in an expression."""
        return [c for c in graph_children(e) if isinstance(c, Var)]
