"""Layouts as TVM writes them: ``NCHW``, ``OHWI16o``, ``NCHW8c``, and transposing between them.

A capital letter is an axis; a number and a small letter split that many elements off it, the
innermost part of the axis.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from unity.errors import UnityError
from unity.frontend.relay.relay_call import Converter, RelayCall
from unity.ir.dims import Dim, equal, floordiv
from unity.ir.graph import Expr


@dataclass(frozen=True, slots=True)
class Part:
    """An axis of a layout: a whole axis or, with a size, the innermost part of one."""

    letter: str
    size: int | None = None


def parts_of(layout: str) -> tuple[Part, ...]:
    """The axes of a layout.

    Raises:
        UnityError: It is none, or splits an axis twice.
    """
    found = re.findall(r"(\d*)([A-Za-z])", layout)
    if "".join(n + a for n, a in found) != layout or not layout:
        raise UnityError(f"{layout!r} is no layout")
    parts = tuple(Part(a, int(n) if n else None) for n, a in found)
    names = [p.letter for p in parts]
    for part in parts:
        split = part.letter.islower()
        if split != (part.size is not None) or part.size == 0 or names.count(part.letter) > 1:
            raise UnityError(f"{layout!r} is no layout that is known")
        if split and part.letter.upper() not in names:
            raise UnityError(f"{layout!r} splits {part.letter.upper()!r}, which it does not have")
    return parts


def primal(layout: str) -> str:
    """The axes of a layout without their parts."""
    return "".join(p.letter for p in parts_of(layout) if p.size is None)


def transform(c: RelayCall, x: Expr, source: str, target: str) -> Expr:
    """A tensor from one layout to another one of the same axes."""
    if source == target:
        return x
    old, new = parts_of(source), parts_of(target)
    if sorted(primal(source)) != sorted(primal(target)):
        raise UnityError(f"the layouts {source!r} and {target!r} have different axes")
    if len(c.shape_of(x)) != len(old):
        raise UnityError(f"a tensor of rank {len(c.shape_of(x))} is not in the layout {source!r}")
    x = _joined(c, x, old)
    return _split(c, c.transposed(x, _order(primal(source), primal(target))), new)


def _order(source: str, target: str) -> tuple[int, ...]:
    return tuple(source.index(a) for a in target)


def _joined(c: RelayCall, x: Expr, parts: tuple[Part, ...]) -> Expr:
    """A tensor with the parts of its axes joined to them."""
    if all(p.size is None for p in parts):
        return x
    shape = c.shape_of(x)
    letters = [p.letter for p in parts]
    order: list[int] = []
    joined: list[Dim] = []
    for axis, part in enumerate(parts):
        if part.size is not None:
            continue
        order.append(axis)
        extent = shape[axis]
        inner = part.letter.lower()
        if inner in letters:
            at = letters.index(inner)
            if not equal(shape[at], parts[at].size or 0):
                raise UnityError(f"axis {at} has the extent {shape[at]}, not {parts[at].size}")
            order.append(at)
            extent = extent * shape[at]
        joined.append(extent)
    return c.op("reshape", c.transposed(x, order), tuple(joined))


def _split(c: RelayCall, x: Expr, parts: tuple[Part, ...]) -> Expr:
    """A tensor with axes split as a layout says."""
    sizes = {p.letter.upper(): p.size for p in parts if p.size is not None}
    if not sizes:
        return x
    shape: list[Dim] = []
    places: dict[str, int] = {}
    whole = [p.letter for p in parts if p.size is None]
    for letter, extent in zip(whole, c.shape_of(x), strict=True):
        places[letter] = len(shape)
        size = sizes.get(letter)
        if size is None:
            shape.append(extent)
            continue
        outer = floordiv(extent, size)
        if not equal(outer * size, extent):
            raise c.gap(f"an axis of extent {extent} in parts of {size}, which needs padding")
        places[letter.lower()] = len(shape) + 1
        shape += [outer, size]
    return c.transposed(c.op("reshape", x, tuple(shape)), [places[p.letter] for p in parts])


def _transform(c: RelayCall) -> Expr:
    return transform(c, c.tensor(0), c.text("src_layout"), c.text("dst_layout"))


CONVERTERS: dict[str, Converter] = {"layout_transform": _transform}
