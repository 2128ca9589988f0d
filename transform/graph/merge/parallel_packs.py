"""Which values of parallel branches become one: packs, a value of each branch side by side.

Comes in: convolutions of one input, alike but for their weights. Goes out: step by step what may be
done to all of them at once: the same elementwise op on each, with numbers that may differ from
channel to channel; and bounds, which some branches have and others do not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unity.ir.attrs import Attrs
from unity.ir.dtype import Array
from unity.ir.graph import Call, Constant, Expr, Op, Var, VarBinding

Values = tuple[Var, ...]
"""A value of each branch."""
_PADDED = frozenset({"add", "subtract", "multiply", "maximum", "minimum"})
"""Ops that stay finite where an operand is 0 for channels that only fill a block."""


@dataclass(frozen=True, slots=True)
class Step:
    """An op on packs.

    Attributes:
        results: What it gives for each branch.
        callee: The op.
        args: Packs made before, and constants for all channels.
        attrs: Of the op.
    """

    results: Values
    callee: Op
    args: tuple[Values | Constant, ...]
    attrs: Attrs


@dataclass(frozen=True, slots=True)
class Uses:
    """The bindings that use each variable directly, and whether all uses are such."""

    users: Mapping[Var, Sequence[VarBinding]]
    count: Mapping[Var, int]

    def only(self, var: Var) -> VarBinding | None:
        """The one binding that uses it, once."""
        mine = self.users.get(var, ())
        return mine[0] if len(mine) == 1 and self.count.get(var) == 1 else None


class Packs:
    """Carries the packs known, and which one each value is in."""

    def __init__(
        self, first: Values, channels: Sequence[int], rooms: Sequence[int], uses: Uses
    ) -> None:
        self.channels = channels
        self.rooms = rooms
        self.uses = uses
        self.pack_of: dict[Var, Values] = dict.fromkeys(first, first)
        self.last = first

    def steps(self, pointwise: Collection[str]) -> Iterator[Step]:
        """What is done to all branches alike, in order; at last bounds that only some have."""
        todo = [self.last]
        while todo:
            pack = todo.pop(0)
            for user in self.uses.users.get(pack[0], ()):
                step = self.alike(pack, user, pointwise)
                if step is not None:
                    self.take(step.results)
                    todo.append(step.results)
                    yield step
        yield from self.bounded()

    def take(self, results: Values) -> None:
        """Note a pack."""
        self.pack_of.update(dict.fromkeys(results, results))
        self.last = results

    def alike(self, pack: Values, user: VarBinding, pointwise: Collection[str]) -> Step | None:
        """A user of the first value, if each of the others has such a user."""
        value = user.value
        if not isinstance(value, Call) or not isinstance(value.callee, Op):
            return None
        if value.callee.name not in pointwise or user.var in self.pack_of:
            return None
        calls, results = [value], [user.var]
        for var in pack[1:]:
            found = next(
                (b for b in self.uses.users.get(var, ()) if self.fits(b, value, results)), None
            )
            if found is None or not isinstance(found.value, Call):
                return None
            calls.append(found.value)
            results.append(found.var)
        args = self.same(value.args, calls)
        return None if args is None else Step(tuple(results), value.callee, args, value.attrs)

    def fits(self, binding: VarBinding, like: Call, taken: Sequence[Var]) -> bool:
        """Whether a binding is the same op, on values of the same packs."""
        value = binding.value
        if not isinstance(value, Call) or binding.var in self.pack_of or binding.var in taken:
            return False
        if value.callee != like.callee or value.attrs != like.attrs:
            return False
        return len(value.args) == len(like.args) and all(
            isinstance(a, Constant) is isinstance(b, Constant)
            for a, b in zip(value.args, like.args, strict=True)
        )

    def same(
        self, args: Sequence[Expr], calls: Sequence[Call]
    ) -> tuple[Values | Constant, ...] | None:
        """The operands of all branches' calls, if each is a pack or constants."""
        found: list[Values | Constant] = []
        for i, first in enumerate(args):
            mine = [c.args[i] for c in calls]
            if isinstance(first, Constant):
                callee = calls[0].callee
                padded = isinstance(callee, Op) and callee.name in _PADDED
                merged = self.constant([c for c in mine if isinstance(c, Constant)], padded=padded)
                if merged is None:
                    return None
                found.append(merged)
            else:
                pack = self.pack_of.get(first) if isinstance(first, Var) else None
                if pack is None or tuple(mine) != pack:
                    return None
                found.append(pack)
        return tuple(found)

    def constant(self, parts: Sequence[Constant], *, padded: bool) -> Constant | None:
        """One constant for all branches: the number they share, or one for each channel."""
        first = parts[0].data
        if all(p.data.size == 1 and p.data.dtype == np.float32 for p in parts) and all(
            p.data.reshape(()).tobytes() == first.reshape(()).tobytes() for p in parts
        ):
            return Constant(first.reshape(()), parts[0].name)
        columns = [_column(p.data, c) for p, c in zip(parts, self.channels, strict=True)]
        if not padded or any(c is None for c in columns):
            return None
        return self.per_channel([c for c in columns if c is not None], parts[0].name)

    def per_channel(self, columns: Sequence[Array], name: str | None) -> Constant:
        """A constant with a value for each channel, 0 for those that only fill."""
        filled = [
            np.pad(c, (0, room - c.size)) for c, room in zip(columns, self.rooms, strict=True)
        ]
        return Constant(np.concatenate(filled).reshape(1, -1, 1, 1), name)

    def bounded(self) -> Iterator[Step]:
        """Bounds that some branches have: the others get infinite ones."""
        pack = self.last
        limits: list[tuple[float, float]] = []
        results: list[Var] = []
        for var in pack:
            user = self.uses.only(var)
            limit = None if user is None else bounds_of(user.value)
            limits.append(limit or (-np.inf, np.inf))
            results.append(user.var if user is not None and limit is not None else var)
        if tuple(results) == pack:
            return
        sides = ((0, "maximum", -np.inf), (1, "minimum", np.inf))
        wanted = [s for s in sides if any(limit[s[0]] != s[2] for limit in limits)]
        for at, (side, name, _) in enumerate(wanted):
            numbers = [
                np.full(c, limit[side], np.float32)
                for c, limit in zip(self.channels, limits, strict=True)
            ]
            end = at == len(wanted) - 1
            made = tuple(results) if end else tuple(Var(v.name, v.type, v.span) for v in pack)
            args = (self.last, self.per_channel(numbers, ("lowest", "highest")[side]))
            self.last = made
            yield Step(made, Op(name), args, Attrs())
        self.pack_of.update(dict.fromkeys(results, tuple(results)))


def bounds_of(value: Expr) -> tuple[float, float] | None:
    """What an op keeps values between, if it does nothing else."""
    match value:
        case Call(Op("nn.relu"), (Var(),)):
            return 0.0, np.inf
        case Call(Op("clip"), (Var(),)):
            low, high = value.attrs["min"], value.attrs["max"]
            return (
                float(low) if isinstance(low, int | float) else -np.inf,
                float(high) if isinstance(high, int | float) else np.inf,
            )
        case _:
            return None


def _column(data: Array, channels: int) -> Array | None:
    """A constant's value for each channel, if it has such."""
    shape = (1,) * (4 - data.ndim) + data.shape
    if data.dtype != np.float32 or len(shape) > 4:
        return None
    if data.size == 1:
        return np.full(channels, data.reshape(()), np.float32)
    return data.reshape(-1) if shape == (1, channels, 1, 1) else None
