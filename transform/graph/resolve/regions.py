"""Regions: sites that one engine takes together, as large as they can be without a cycle."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from unity.ir.graph import Var


def regions(
    order: Sequence[Var], operands: Mapping[Var, Sequence[Var]], label: Mapping[Var, Hashable]
) -> list[list[Var]]:
    """Maximal sets of connected variables of one label whose outlining makes no cycle.

    Variables are joined in order, each to the regions of its operands. Two regions are joined
    unless a path leads from one to the other through anything else: through other regions, too,
    since each of them becomes one call.

    Args:
        order: All variables, operands before what uses them.
        operands: What each is computed from.
        label: What those that belong to a region are labelled: its engine and its block, because
            what happens between two blocks is not in `operands`. The others are outside.
    """
    groups = _Groups(order, operands)
    for i, var in enumerate(order):
        if var not in label:
            continue
        for other in operands.get(var, ()):
            j = groups.number.get(other)
            if j is not None and label.get(other) == label[var]:
                groups.join(groups.find(j), groups.find(i))
    found: dict[int, list[Var]] = {}
    for i, var in enumerate(order):
        if var in label:
            found.setdefault(groups.find(i), []).append(var)
    return list(found.values())


class _Groups:
    """Carries which variables are one node, and what each node needs."""

    def __init__(self, order: Sequence[Var], operands: Mapping[Var, Sequence[Var]]) -> None:
        self.number = {var: i for i, var in enumerate(order)}
        self._parent = list(range(len(order)))
        self._needs: list[set[int]] = [
            {self.number[o] for o in operands.get(v, ()) if o in self.number} for v in order
        ]

    def find(self, i: int) -> int:
        """The node that a variable is in."""
        while self._parent[i] != i:
            self._parent[i] = self._parent[self._parent[i]]
            i = self._parent[i]
        return i

    def join(self, a: int, b: int) -> None:
        """Make one node of two, if that makes no cycle."""
        if a == b or self._leads(a, b) or self._leads(b, a):
            return
        self._parent[b] = a
        self._needs[a] = {self.find(n) for n in self._needs[a] | self._needs[b]} - {a}

    def _leads(self, start: int, to: int) -> bool:
        """Whether a node needs another through a third."""
        todo = [n for n in map(self.find, self._needs[start]) if n not in (start, to)]
        seen = set(todo)
        while todo:
            for n in map(self.find, self._needs[todo.pop()]):
                if n == to:
                    return True
                if n not in seen and n != start:
                    seen.add(n)
                    todo.append(n)
        return False
