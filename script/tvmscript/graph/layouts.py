"""Operators in the layouts of TVM's attributes: ours takes channels first, so operands are turned.

``R.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="OHWI")`` is a convolution of ``x`` with its
axes in the order NCHW by ``w`` in OIHW, whose result is turned to NHWC again. Blocks of an axis
(``NCHW4c``) are joined before and parted after it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...parser.source import Source
from ..syntax import at_place, constant, dotted
from .before import Naming

_ABSENT = ("", None)
Layout = tuple[tuple[str, int], ...]
"""Axes by name, each with its extent if it is a block."""


@dataclass(frozen=True, slots=True)
class LaidOut:
    """An operator whose attributes say the order of axes.

    Attributes:
        layout: The attribute for data and result.
        data: Our order of the data's axes.
        kernel: Our order of the weight's axes; None where there is no weight.
    """

    layout: str
    data: str
    kernel: str | None = None


LAID_OUT: Mapping[str, LaidOut] = {
    **{
        f"R.nn.conv{rank}d": LaidOut("data_layout", f"NC{axes}", f"OI{axes}")
        for rank, axes in ((1, "W"), (2, "HW"), (3, "DHW"))
    },
    **{
        f"R.nn.conv{rank}d_transpose": LaidOut("data_layout", f"NC{axes}", f"IO{axes}")
        for rank, axes in ((1, "W"), (2, "HW"), (3, "DHW"))
    },
    **{
        f"R.nn.{kind}_pool{rank}d": LaidOut("layout", f"NC{axes}")
        for kind in ("max", "avg", "adaptive_avg")
        for rank, axes in ((1, "W"), (2, "HW"), (3, "DHW"))
    },
}


def in_our_layout(source: Source, node: ast.Call, op: LaidOut, named: Naming) -> ast.expr:
    """A call with its operands turned to our order of axes, and its result turned back.

    Args:
        source: For errors.
        node: The call.
        op: What its attributes mean.
        named: Gives a value that is used several times a name before the statement.

    Returns:
        The call itself where all is in our order.

    Raises:
        UnityError: A layout has other axes than the operator, or parts of an axis that has no rest.
    """
    given = {k.arg: k for k in node.keywords}
    names = (op.layout, "kernel_layout", "out_layout")
    said = {n: constant(given[n].value) for n in names if n in given}
    data = said.get(op.layout, op.data)
    kernel = said.get("kernel_layout", op.kernel)
    result = said.get("out_layout")
    result = data if result in _ABSENT else result
    if (data, kernel, result) == (op.data, op.kernel, op.data):
        return node
    found: dict[str, Layout] = {}
    for name, text, ours in (
        (op.layout, data, op.data),
        ("kernel_layout", kernel, op.kernel),
        ("out_layout", result, op.data),
    ):
        if ours is None and text is None:
            continue
        layout = layout_of(text, ours or "")
        if layout is None:
            raise source.error(
                given.get(name, node),
                f"{name}: the axes are those of {ours!r} in any order, or blocks of them "
                f"('{op.data}4c'), got {text!r}",
            )
        found[name] = layout
    orders = [found[op.layout], *([] if op.kernel is None else [found["kernel_layout"]])]
    if len(node.args) < len(orders):
        raise source.error(node, "operands that are in another layout are given by place")
    wanted = [op.data, op.kernel or ""]
    operands = [
        _plain(x, layout, ours, named)
        for x, layout, ours in zip(node.args, orders, wanted, strict=False)
    ]
    rest = node.args[len(operands) :]
    keywords = [k for k in node.keywords if k.arg not in names]
    call = at_place(ast.Call(node.func, [*operands, *rest], keywords), node)
    return _laid_out(call, op.data, found["out_layout"], named)


def layout_of(text: object, axes: str) -> Layout | None:
    """The axes of a layout, ``NCHW4c``; None if they are not those of an operator.

    Args:
        text: TVM's word for it: an axis is a capital, a block of one its extent and a small letter.
        axes: The operator's axes.

    >>> layout_of("NCHW4c", "NCHW")
    (('N', 0), ('C', 0), ('H', 0), ('W', 0), ('c', 4))
    """
    if not isinstance(text, str) or not re.fullmatch(r"(?:[A-Z]|[1-9]\d*[a-z])+", text):
        return None
    parts = re.findall(r"(\d*)([A-Za-z])", text)
    names = [name for _, name in parts]
    whole = sorted(n for n in names if n.isupper())
    blocks = [n for n in names if n.islower()]
    if whole != sorted(axes) or len(set(blocks)) != len(blocks):
        return None
    if not {b.upper() for b in blocks} <= set(axes):
        return None
    return tuple((name, int(extent or 0)) for extent, name in parts)


def _plain(value: ast.expr, layout: Layout, axes: str, named: Naming) -> ast.expr:
    """A value with whole axes in our order, of one in a layout."""
    names = [name for name, _ in layout]
    extents = dict(layout)
    order = [n for axis in axes for n in (axis, axis.lower()) if n in names]
    if len(order) == len(axes):
        return _permuted(value, names, order)
    name = named(value)
    sizes: list[ast.expr] = []
    for axis in axes:
        size = size_of(name, names.index(axis))
        block = extents.get(axis.lower())
        if block is not None:
            named.check(name, names.index(axis.lower()), block, value)
            size = ast.BinOp(size, ast.Mult(), ast.Constant(block))
        sizes.append(size)
    return reshaped(_permuted(name, names, order), sizes, value)


def _laid_out(value: ast.expr, axes: str, layout: Layout, named: Naming) -> ast.expr:
    """A value in a layout, of one with whole axes in our order."""
    names = [name for name, _ in layout]
    extents = dict(layout)
    order = [n for axis in axes for n in (axis, axis.lower()) if n in names]
    if len(order) == len(axes):
        return _permuted(value, order, names)
    name = named(value)
    sizes: list[ast.expr] = []
    for k, axis in enumerate(axes):
        block = extents.get(axis.lower())
        if block is None:
            sizes.append(size_of(name, k))
        else:
            parts = ast.BinOp(size_of(name, k), ast.FloorDiv(), ast.Constant(block))
            sizes += [parts, ast.Constant(block)]
    return _permuted(reshaped(name, sizes, value), order, names)


def _permuted(value: ast.expr, found: Sequence[str], wanted: Sequence[str]) -> ast.expr:
    """A value with its axes in another order."""
    return permuted(value, [found.index(axis) for axis in wanted])


def permuted(value: ast.expr, order: Sequence[int]) -> ast.expr:
    """A value with its axes in another order, by their numbers."""
    if list(order) == list(range(len(order))):
        return value
    axes = ast.Tuple([ast.Constant(k) for k in order], ast.Load())
    return at_place(ast.Call(dotted("R.permute_dims"), [value, axes], []), value)


def reshaped(value: ast.expr, sizes: Sequence[ast.expr], like: ast.expr) -> ast.expr:
    """A value in another shape."""
    shape = ast.Tuple(list(sizes), ast.Load())
    return at_place(ast.Call(dotted("R.reshape"), [value, shape], []), like)


def size_of(name: ast.Name, axis: int) -> ast.expr:
    """``x.shape[axis]``."""
    bare = ast.Name(name.id, ast.Load())
    shape = ast.Attribute(bare, "shape", ast.Load())
    return ast.Subscript(shape, ast.Constant(axis), ast.Load())
