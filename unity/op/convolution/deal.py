"""A convolution's input padded and, where windows are a stride apart, dealt out.

Neighbouring outputs of a convolution with stride 2 read every second element: a vector of them
would be a gather. Dealing the innermost axis to `stride` piles, as one deals cards, makes those
reads contiguous, and costs one pass over the input, which padding needs anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unity import te
from unity.ir.dims import Dim, always_ge
from unity.ir.prim_expr import Imm, PrimExpr
from unity.ir.symbols.convert import to_prim_expr
from unity.op.window import Window, position


@dataclass(frozen=True, slots=True)
class Pile:
    """How one axis is laid out anew.

    Attributes:
        window: The windows along it.
        piles: How many piles it is dealt to; 1 for none.
        jump: Elements of the input between two of a pile.
        extents: The new axis, or two: the pile, and the place in it.
    """

    window: Window
    piles: int
    jump: int
    extents: tuple[Dim, ...]

    def source(self, index: Sequence[PrimExpr]) -> PrimExpr:
        """Where in the padded axis an element comes from."""
        place = index[-1] if self.jump == 1 else index[-1] * self.jump
        return place if self.piles == 1 else place + index[0]

    def read(self, step: PrimExpr, tap: PrimExpr) -> tuple[PrimExpr, ...]:
        """Where a window's tap lies now."""
        if self.jump == 1:
            return (position(step, tap, self.window),)
        if self.window.kernel == 1:
            return (step,)
        moved = tap if self.window.dilation == 1 else tap * self.window.dilation
        place = step + moved // self.jump
        return (place,) if self.piles == 1 else (moved % self.jump, place)

    @property
    def reach(self) -> Dim:
        """How far into the padded axis elements are taken from."""
        return (self.extents[-1] - 1) * self.jump + self.piles


@dataclass(frozen=True, slots=True)
class Dealt:
    """An input laid out anew, its spatial axes last."""

    tensor: te.Tensor
    piles: tuple[Pile, ...]

    def read(
        self, lead: Sequence[PrimExpr], steps: Sequence[PrimExpr], taps: Sequence[PrimExpr]
    ) -> PrimExpr:
        """What the windows at `steps` see at `taps`."""
        at = list(lead)
        for pile, step, tap in zip(self.piles, steps, taps, strict=True):
            at += pile.read(step, tap)
        return self.tensor[tuple(at)]


def deal(x: te.Tensor, windows: Sequence[Window], extents: Sequence[Dim], fill: Imm) -> Dealt:
    """The input padded by `fill` and dealt; untouched where there is nothing to do."""
    piles = tuple(
        _pile(w, e, innermost=d == len(windows) - 1)
        for d, (w, e) in enumerate(zip(windows, extents, strict=True))
    )
    if all(
        p.jump == 1 and p.window.before == 0 and always_ge(e, p.reach)
        for p, e in zip(piles, extents, strict=True)
    ):
        return Dealt(x, piles)
    lead = x.ndim - len(windows)
    shape = [*x.shape[:lead], *(to_prim_expr(e) for p in piles for e in p.extents)]

    def element(*i: PrimExpr) -> PrimExpr:
        at, inside, used = list(i[:lead]), list[PrimExpr](), lead
        for pile, extent in zip(piles, extents, strict=True):
            place = pile.source(i[used : used + len(pile.extents)])
            used += len(pile.extents)
            before = pile.window.before
            if before:
                inside.append(place >= before)
            if not always_ge(extent + before, pile.reach):
                inside.append(place < to_prim_expr(extent + before))
            at.append(place - before if before else place)
        value = x[tuple(at)]
        return te.select(te.all_true(*inside), value, fill) if inside else value

    return Dealt(te.compute(shape, element, "pad"), piles)


def _pile(window: Window, extent: Dim, *, innermost: bool) -> Pile:
    kernel, stride = window.kernel, window.stride
    if stride == 1 or not isinstance(kernel, int) or not (innermost or kernel == 1):
        return Pile(window, 1, 1, (window.padded(extent),))
    if kernel == 1:
        return Pile(window, 1, stride, (window.steps(extent),))
    length = window.steps(extent) + (kernel - 1) * window.dilation // stride
    if window.dilation % stride == 0:
        return Pile(window, 1, stride, (length,))
    piles = kernel if window.dilation == 1 and kernel < stride else stride
    return Pile(window, piles, stride, (piles, length))
