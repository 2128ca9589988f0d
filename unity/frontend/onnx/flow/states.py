"""The states of a Loop: tensors, some axes of which its steps change, and sequences.

What steps may change is found by converting the body and looking: an axis of an unknown size may
make others unknown, so this is repeated until nothing more does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import onnx

from unity.errors import UnityError
from unity.frontend.emission import Gap
from unity.ir.dims import Dim, as_dim, bounds, equal, symbols_of
from unity.ir.dtype import BOOL, INT64
from unity.ir.graph import Expr, Var
from unity.ir.types import TensorType, Type
from unity.op.argument import shape_text

from ..node import Node, Outcome
from ..sequences.held import Form, Held, Listed, Maybe, form_of, listed
from .scan import kept

if TYPE_CHECKING:
    from ..importer import GraphImporter


@dataclass(frozen=True, slots=True)
class State:
    """A state of a loop.

    Attributes:
        name: What the body calls it; empty for what no step reads.
        init: What it is before the first step.
        axes: The axes of a tensor that steps change.
        form: How it is passed on if it is no tensor.
    """

    name: str
    init: Outcome
    axes: frozenset[int] = frozenset()
    form: Form | None = None

    @property
    def is_loose(self) -> bool:
        """Whether its shape changes."""
        return bool(self.axes) or self.form is not None

    def type(self, node: Node) -> Type:
        """The type of its variable."""
        if self.form is not None:
            return self.form.type
        of = node.type_of(node.plain(self.init))
        return TensorType(of.ndim, of.dtype) if self.axes else of

    def packed(self, node: Node) -> Expr:
        """What it is before the first step, as one value."""
        if self.form is None:
            return node.plain(self.init)
        return self.form.packed(node, as_held(node, self.init, self.form))

    def unpacked(self, node: Node, value: Expr) -> Outcome:
        """What it is in or after some step."""
        if self.form is not None:
            return self.form.unpacked(node, value)
        return shaped(node, value, node.plain(self.init), self.axes)

    def after(self, node: Node, entered: Outcome, new: Outcome) -> Expr:
        """What a step gives, as one value.

        Raises:
            Gap: Its shape changes at other axes than expected.
        """
        if self.form is not None:
            return self.form.packed(node, as_held(node, new, self.form))
        old, found = node.plain(entered), node.plain(new)
        before, now = node.shape_of(old), node.shape_of(found)
        pairs = list(zip(before, now, strict=False))
        changes = any(i not in self.axes and _differ(a, b) for i, (a, b) in enumerate(pairs))
        if len(before) != len(now) or changes:
            raise node.gap(
                f"the state {self.name!r} whose shape changes from "
                f"{shape_text(before)} to {shape_text(now)}"
            )
        target = tuple(b if i in self.axes else a for i, (a, b) in enumerate(pairs))
        return kept(node, found, TensorType(target, node.dtype_of(old)))


def as_held(node: Node, value: Outcome, form: Form) -> Held:
    """A value as one that is no tensor, where it is passed on as such.

    Raises:
        UnityError: It is a tensor where a sequence is passed on.
    """
    if isinstance(value, Held):
        return value
    if not form.is_tensor:
        raise UnityError("gives a tensor in place of a sequence")
    return Maybe(listed(node, (value,)).kind, is_tensor=True, value=value)


def states_of(node: Node, body: onnx.GraphProto, init: Sequence[Outcome]) -> list[State]:
    """The states, and what steps may change of them.

    If the body can't be converted with such axes, none changes: what a step gives is then asserted
    to have the old shape.
    """
    names = [info.name for info in body.input[2:]]
    plain = [
        State(name, value, frozenset(), form_of(value) if isinstance(value, Held) else None)
        for name, value in zip(names, init, strict=True)
    ]
    found = plain
    while True:
        inner = node.graph.trial()
        enter_step(inner, body)
        within = Node(node.proto, inner, node.version)
        _, before = enter(inner, within, found)
        try:
            after = inner.inline(body)[1 : 1 + len(init)]
            wider = [_wider(within, *each) for each in zip(found, before, after, strict=True)]
        except (Gap, UnityError):
            return plain
        if wider == found:
            return found
        found = wider


def _wider(node: Node, state: State, before: Outcome, after: Outcome) -> State:
    """A state that also holds what a step gives."""
    if state.form is not None:
        form = state.form.joined(form_of(as_held(node, after, state.form)))
        return replace(state, form=form)
    if isinstance(after, Maybe) and after.is_tensor:
        return replace(state, form=form_of(after))
    shape, new = node.shape_of(node.plain(before)), node.shape_of(node.plain(after))
    if len(shape) != len(new):
        raise node.gap("a state whose number of axes changes")
    changed = {k for k, d in enumerate(shape) if not equal(d, new[k])}
    return replace(state, axes=state.axes | changed)


def enter_step(inner: GraphImporter, body: onnx.GraphProto) -> tuple[Var, Var]:
    """Variables for the number of a step and for the condition, under the body's names."""
    nth = inner.builder.new_var(body.input[0].name, TensorType((), INT64))
    going = inner.builder.new_var(body.input[1].name, TensorType((), BOOL))
    inner.values[body.input[0].name] = nth
    inner.values[body.input[1].name] = going
    return nth, going


def enter(
    inner: GraphImporter, within: Node, states: Sequence[State]
) -> tuple[list[Var], list[Outcome]]:
    """Variables for the states, and what the body has under its names for them.

    The two differ for states that change: those have symbols of the step in the body.
    """
    found: list[Var] = []
    entered: list[Outcome] = []
    for state in states:
        var = inner.builder.new_var(state.name or "stacked", state.type(within))
        value = state.unpacked(within, var)
        if state.name:
            inner.define(state.name, value)
        found.append(var)
        entered.append(value)
    return found, entered


def stepped(
    within: Node, body: onnx.GraphProto, states: Sequence[State], entered: Sequence[Outcome]
) -> list[Expr]:
    """The body's outputs: its condition, the next states, what it gives besides."""
    found = within.graph.inline(body)
    count = len(states)
    after = [
        state.after(within, old, new)
        for state, old, new in zip(states, entered, found[1 : 1 + count], strict=True)
    ]
    others = [within.plain(v) for v in found[1 + count :]]
    return [within.plain(found[0]), *after, *others]


def even_types(
    node: Node, body: onnx.GraphProto, states: Sequence[State]
) -> list[TensorType] | None:
    """The types of what a step gives besides states; None if a step may change their shapes."""
    inner = node.graph.trial()
    enter_step(inner, body)
    within = Node(node.proto, inner, node.version)
    enter(inner, within, states)
    try:
        found = inner.inline(body)[1 + len(states) :]
        types = [within.type_of(within.plain(v)) for v in found]
        shapes = [within.shape_of(within.plain(v)) for v in found]
    except (Gap, UnityError):
        return None
    new = (s for shape in shapes for s in symbols_of(*shape) if not node.builder.has_symbol(s.name))
    return types if not inner.gaps and next(new, None) is None else None


def shaped(node: Node, value: Expr, init: Expr, axes: frozenset[int]) -> Expr:
    """A state of some step: shaped as it began but for its changing axes."""
    if not axes:
        return value
    fresh = node.graph.builder.fresh
    shape = enumerate(node.shape_of(init))
    return node.assert_shape(
        value, tuple(fresh(f"{node.label}_size") if k in axes else d for k, d in shape)
    )


def stack_of(node: Node, given: Expr) -> State:
    """A state that collects what each step gives of one kind."""
    kind = listed(node, (given,)).kind
    return State("", Listed(kind), frozenset(), Form(kind))


def _differ(a: Dim, b: Dim) -> bool:
    """Whether two extents are never the same."""
    low, high = bounds(as_dim(a - b))
    return (low is not None and low > 0) or (high is not None and high < 0)
