"""Operators in the layouts of TVM's attributes: ours takes channels first, so operands are turned.

``R.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="OHWI")`` is a convolution of ``x`` with its
axes in the order NCHW by ``w`` in OIHW, whose result is turned to NHWC again.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from ..parser.source import Source
from .syntax import at_place, constant, dotted

_ABSENT = ("", None)


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


def in_our_layout(source: Source, node: ast.Call, op: LaidOut) -> ast.expr:
    """A call with its operands turned to our order of axes, and its result turned back.

    Args:
        source: For errors.
        node: The call.
        op: What its attributes mean.

    Returns:
        The call itself where all is in our order.

    Raises:
        UnityError: A layout has other axes, as one in blocks has.
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
    for name, found, ours in (
        (op.layout, data, op.data),
        ("kernel_layout", kernel, op.kernel),
        ("out_layout", result, op.data),
    ):
        if found != ours and (ours is None or sorted(str(found)) != sorted(ours)):
            raise source.error(
                given.get(name, node),
                f"{name}: the axes are those of {ours!r} in any order, got {found!r}",
            )
    orders = [(str(data), op.data), *([] if op.kernel is None else [(str(kernel), op.kernel)])]
    if len(node.args) < len(orders):
        raise source.error(node, "operands that are in another layout are given by place")
    operands = [_turned(x, *order) for x, order in zip(node.args, orders, strict=False)]
    rest = node.args[len(operands) :]
    keywords = [k for k in node.keywords if k.arg not in names]
    call = at_place(ast.Call(node.func, [*operands, *rest], keywords), node)
    return _turned(call, op.data, str(result))


def _turned(value: ast.expr, found: str, wanted: str) -> ast.expr:
    """A value with its axes in another order."""
    if found == wanted:
        return value
    axes = ast.Tuple([ast.Constant(found.index(axis)) for axis in wanted], ast.Load())
    return at_place(ast.Call(dotted("R.permute_dims"), [value, axes], []), value)
