"""Which nodes of a dataflow graph to fuse: grouping by pattern along the post-dominator tree.

A node may fuse with its immediate post-dominator, the first node that every path from it leads
through, together with all that lies between, if the patterns met on the way allow it. Then no value
inside a group is needed outside. (The approach of TVM's FuseOps; Chen et al., OSDI 2018.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from unity.op.registry import Pattern

LEVELS: dict[Pattern, int] = {
    "elementwise": 0,
    "broadcast": 1,
    "injective": 2,
    "reduction": 3,
    "out_fusable": 4,
    "opaque": 5,
}
ELEMENTWISE, BROADCAST, INJECTIVE, REDUCTION, OUT_FUSABLE, OPAQUE = range(6)
LARGEST = 64
"""A group has no more nodes than this, so that kernels stay readable and quick to compile."""


@dataclass(slots=True)
class Node:
    """A kernel call.

    Attributes:
        level: Its pattern.
        uses: For each use by another node, that node's index and the pattern of the edge.
        escapes: Whether something that is no node uses it too.
        transposes: Whether it reorders axes only, for contractions that can read the other order.
        widens: Whether it makes more of each element than was in memory: its user does that.
        gathers: Whether it only puts together what can lie in the whole from the start: nothing is
            to join it, unless it joins what uses the whole.
        calls: How many calls of its kernel there are.
    """

    level: int
    uses: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    escapes: bool = False
    transposes: bool = False
    widens: bool = False
    gathers: bool = False
    calls: int = 1


@dataclass(slots=True)
class _Dominator:
    """The immediate post-dominator of a node: its index, the worst edge on the way, its depth."""

    parent: int | None
    level: int
    depth: int


def group(nodes: Sequence[Node]) -> list[int]:
    """For each node the index of its group's last node.

    Args:
        nodes: In an order where uses point forward.
    """
    return _Grouping(nodes).run()


class _Grouping:
    """Carries the dominator tree and the groups as a union-find forest."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.root = list(range(len(nodes)))
        self.size = [1] * len(nodes)
        self.level = [n.level for n in nodes]
        self.dominators = _post_dominators(nodes)

    def run(self) -> list[int]:
        """Anchors take their epilogues first, then injective chains join what they can.

        But before all, what widens joins the one that wants it wide, and what gathers its user.
        """
        for i, node in enumerate(self.nodes):
            if node.widens and self.dominators[i].level <= BROADCAST:
                self.consider(i, node, 0)
        for i in reversed(range(len(self.nodes))):
            if self.nodes[i].gathers:
                self.consider(i, self.nodes[i], 1)
        for i in self.preferred():
            self.follow(i)
        for phase in (0, 1):
            for i, node in enumerate(self.nodes):
                self.consider(i, node, phase)
        last = {self.find(i): i for i in range(len(self.nodes))}
        return [last[self.find(i)] for i in range(len(self.nodes))]

    def preferred(self) -> list[int]:
        """Anchors that are called more often than others that would take the same node.

        What follows a block's last convolution is then the same kernel in blocks with and without a
        shortcut, which is added to its result.
        """
        takers: dict[int, list[int]] = {}
        for i, node in enumerate(self.nodes):
            at = self.dominators[i]
            while node.level == OUT_FUSABLE and at.parent is not None and at.level == ELEMENTWISE:
                takers.setdefault(at.parent, []).append(i)
                at = self.dominators[at.parent]
        found: dict[int, None] = {}
        for anchors in takers.values():
            calls = [self.nodes[i].calls for i in anchors]
            if min(calls) < max(calls):
                found[anchors[calls.index(max(calls))]] = None
        return list(found)

    def follow(self, i: int) -> None:
        """Fuse an anchor with what is done to its result, as far as that goes."""
        at: int | None = i
        while at is not None and self.find(at) == self.find(i):
            self.consider(at, self.nodes[at], 0)
            at = self.dominators[at].parent

    def consider(self, i: int, node: Node, phase: int) -> None:
        """Fuse a node with its post-dominator if the patterns allow it."""
        dominator = self.dominators[i]
        sink = dominator.parent
        if sink is None or self.find(i) == self.find(sink):
            return
        if self.level[self.find(i)] == OUT_FUSABLE:
            # An anchor takes what is done to each of its elements, and nothing that gathers them.
            if dominator.level == ELEMENTWISE and (node.level != OUT_FUSABLE or phase == 0):
                self.try_fuse(i, sink, lambda level, last: level <= BROADCAST)
        elif node.level <= BROADCAST and dominator.level <= REDUCTION:
            self.try_fuse(
                i, sink, lambda level, last: level <= (OUT_FUSABLE if last else INJECTIVE)
            )
        elif node.level == INJECTIVE and phase == 1:
            most = OUT_FUSABLE if node.transposes else INJECTIVE
            self.try_fuse(i, sink, lambda level, last: level <= (most if last else INJECTIVE))

    def try_fuse(self, source: int, sink: int, allowed: Callable[[int, bool], bool]) -> None:
        """Join everything between two nodes if each group met is allowed."""
        between: dict[int, None] = {}
        todo = [use for use, _ in self.nodes[source].uses]
        while todo:
            i = todo.pop()
            if i in between:
                continue
            if not allowed(self.level[self.find(i)], i == sink) or self.stays(i):
                return
            between[i] = None
            if i != sink:
                todo += (use for use, _ in self.nodes[i].uses)
        joined = {self.find(i) for i in (source, *between)}
        if sum(self.size[r] for r in joined) <= LARGEST:
            for i in between:
                self.merge(i, sink)
            self.merge(source, sink)

    def stays(self, i: int) -> bool:
        """Whether a node is to stay by itself."""
        return self.nodes[i].gathers and self.size[self.find(i)] == 1

    def merge(self, i: int, into: int) -> None:
        """Join two groups; an anchor gives the whole its pattern."""
        a, b = self.find(i), self.find(into)
        if a == b:
            return
        self.root[a] = b
        self.size[b] += self.size[a]
        if self.level[a] == OUT_FUSABLE:
            self.level[b] = OUT_FUSABLE

    def find(self, i: int) -> int:
        """The root of a node's group."""
        while self.root[i] != i:
            self.root[i] = self.root[self.root[i]]
            i = self.root[i]
        return i


def _post_dominators(nodes: Sequence[Node]) -> list[_Dominator]:
    found = [_Dominator(None, OPAQUE, 0) for _ in nodes]
    for i in range(len(nodes) - 1, -1, -1):
        node = nodes[i]
        if node.escapes or not node.uses:
            continue
        parent: int | None = node.uses[0][0]
        level = max(edge for _, edge in node.uses)
        for use, _ in node.uses[1:]:
            parent, met = _common(found, parent, use)
            level = max(level, met)
        if parent is not None:
            found[i] = _Dominator(parent, level, found[parent].depth + 1)
    return found


def _common(tree: Sequence[_Dominator], a: int | None, b: int | None) -> tuple[int | None, int]:
    """The first common ancestor in the tree, and the worst edge on the ways to it."""
    level = ELEMENTWISE
    while a != b:
        if a is None or b is None:
            return None, OPAQUE
        if tree[a].depth < tree[b].depth:
            a, b = b, a
        level = max(level, tree[a].level)
        a = tree[a].parent
    return a, level
