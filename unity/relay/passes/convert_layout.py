"""`ConvertLayout`: operators in another layout, their neighbours with them.

``ConvertLayout({"nn.conv2d": ["NHWC", "default"]})`` transposes what a convolution reads and
carries the new layout through what follows (sums, activations, norms, pools, concatenations) to
where something needs the old one. The compiler chooses blocks of channels later, whatever this did.

>>> from unity import relay
>>> x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 1, 1))
>>> mod = relay.IRModule.from_expr(relay.nn.relu(relay.nn.conv2d(x, w, kernel_size=(1, 1))))
>>> print(relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})(mod))
#[version = "0.0.5"]
def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 1, 1), float32]) {
  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");
  %1 = layout_transform(%w, src_layout="OIHW", dst_layout="HWIO");
  %2 = nn.conv2d(%0, %1, kernel_size=[1, 1], data_layout="NHWC", kernel_layout="HWIO");
  %3 = nn.relu(%2);
  %4 = layout_transform(%3, src_layout="NHWC", dst_layout="NCHW");
  %4
}
<BLANKLINE>
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from unity.errors import UnityError
from unity.frontend.relay import syntax
from unity.frontend.relay.calls import operator_call
from unity.frontend.relay.operators import elementwise
from unity.ir.types import TensorType
from unity.relay.inference import types_of
from unity.relay.places import here

from .rewriting import called, each, rewritten

_KERNELS = {"NCHW": "OIHW", "NHWC": "HWIO", "NCW": "OIW", "NWC": "WIO", "NCDHW": "OIDHW",
            "NDHWC": "DHWIO"}  # fmt: skip
"""The weights that TVM takes beside data of a layout, if none are named."""
_CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")
_POOLS = (
    *(f"nn.{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3)),
    "nn.global_max_pool2d",
    "nn.global_avg_pool2d",
    "nn.upsampling",
    "image.resize2d",
)
_ALONE = {*elementwise.CONVERTERS, "nn.leaky_relu"} - {"where", "cast_like"}
_PAIRS = {name for name in elementwise.CONVERTERS if name in (
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "power")}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Carried:
    """A value that is to be had in another layout: ``old`` is what its readers know it in."""

    value: syntax.Expr
    old: str
    new: str


def convert_layout(module: syntax.Module, desired: Mapping[str, Sequence[str]]) -> syntax.Module:
    """A module whose operators of some names are in the layouts that are desired of them.

    Args:
        module: What is to be converted.
        desired: For each operator the layout of its data and, for convolutions, that of the
            weights, "default" for what goes with it: ``{"nn.conv2d": ["NHWC", "default"]}``.

    Raises:
        UnityError: An operator is none of those that are converted, or a layout none of theirs.
    """
    wanted = {name: _layouts(name, given) for name, given in desired.items()}
    kinds = types_of(module) if wanted else {}
    return each(module, lambda _, function: _Converter(wanted, kinds).function(function))


def _layouts(name: str, given: Sequence[str]) -> tuple[str, str]:
    if name not in (*_CONVOLUTIONS, *_POOLS):
        raise UnityError(
            f"ConvertLayout converts no {name}",
            here(),
            f"it does {', '.join(_CONVOLUTIONS)}, pools",
        )
    data = given[0]
    if data == "default":
        return "", ""
    if data not in _KERNELS:
        raise UnityError(
            f"ConvertLayout to {data!r}", here(),
            f"it knows {', '.join(_KERNELS)}; blocks of channels are chosen when compiling",
        )  # fmt: skip
    kernel = given[1] if len(given) > 1 else "default"
    return data, _KERNELS[data] if kernel == "default" else kernel


class _Converter:
    """Converts one function.

    Attributes:
        wanted: Layouts of data and weights by operator; empty for those that are left.
        kinds: What is known of the types of its expressions.
        carried: Expressions, as others read them, that are to be had in another layout.
    """

    def __init__(
        self,
        wanted: Mapping[str, tuple[str, str]],
        kinds: Mapping[syntax.Expr, TensorType],
    ) -> None:
        self.wanted = wanted
        self.kinds = kinds
        self.carried: dict[syntax.Expr, _Carried] = {}

    def function(self, function: syntax.Function) -> syntax.Function:
        """A function converted."""
        return rewritten(function, self.change)

    def change(self, old: syntax.Expr, node: syntax.Expr) -> syntax.Expr:
        """An expression converted: it in its old layout, noted where it is in a new one."""
        if isinstance(node, syntax.TupleGetItem) and node.index == 0:
            whole = self.carried.get(node.tuple)
            if whole is None:
                return node
            return self.back(replace(node, tuple=whole.value), whole.old, whole.new)
        if not isinstance(old, syntax.Call) or not isinstance(node, syntax.Call):
            return node
        name = called(node)
        if name in _CONVOLUTIONS and self.wanted.get(name, ("", ""))[0]:
            return self.convolution(node, *self.wanted[name])
        first = self.carried.get(node.arguments[0]) if node.arguments else None
        if first is None and name in _POOLS and self.wanted.get(name, ("", ""))[0]:
            return self.pool(node, node.arguments[0], self.wanted[name][0])
        if name in _PAIRS and len(node.arguments) == 2:
            return self.pair(old, node)
        if name == "concatenate" and isinstance(node.arguments[0], syntax.Tuple):
            return self.joined(node, node.arguments[0])
        if first is None:
            return node
        return self.following(node, name, first)

    def following(self, node: syntax.Call, name: str, first: _Carried) -> syntax.Expr:
        """A call whose first operand is to be had in a new layout, if it can do so as well."""
        old, new = first.old, first.new
        attributes = node.attributes
        if name in _POOLS and attributes["layout"] == old and not attributes.get("out_layout"):
            return self.pool(node, first.value, new)
        moved: dict[str, syntax.AttrValue] = {}
        if name in ("nn.bias_add", "nn.batch_norm"):
            axis = attributes["axis"]
            assert isinstance(axis, int)
            moved = {"axis": new.index(old[axis])}
        elif name == "nn.pad":
            widths = attributes["pad_width"]
            assert isinstance(widths, tuple)
            moved = {"pad_width": tuple(widths[old.index(letter)] for letter in new)}
        elif name not in _ALONE or len(node.arguments) > 1:
            return node
        call = self.call(node, (first.value, *node.arguments[1:]), **moved)
        if name == "nn.batch_norm":  # a tuple, whose first field is what has a layout
            self.carried[node] = _Carried(call, old, new)
            return node
        return self.back(call, old, new)

    def convolution(self, node: syntax.Call, data: str, kernel: str) -> syntax.Expr:
        given = node.attributes
        old, weights = given["data_layout"], given["kernel_layout"]
        assert isinstance(old, str)
        assert isinstance(weights, str)
        if given.get("out_layout") not in ("", None, old) or old == data:
            return node
        if sorted(old) != sorted(data) or sorted(weights) != sorted(kernel):
            raise UnityError(
                f"{called(node)} can't be in {data} and {kernel}: it is in {old} and {weights}",
                node.span,
            )
        x, weight = node.arguments
        operands = self.turned(x, old, data), self.turned(weight, weights, kernel)
        layouts = {"data_layout": data, "kernel_layout": kernel, "out_layout": ""}
        return self.back(self.call(node, operands, **layouts), old, data)

    def pool(self, node: syntax.Call, x: syntax.Expr, new: str) -> syntax.Expr:
        old = node.attributes["layout"]
        assert isinstance(old, str)
        if old == new or sorted(old) != sorted(new) or node.attributes.get("out_layout"):
            return node
        held = self.carried.get(node.arguments[0])
        value = x if held is not None and x is held.value else self.turned(x, old, new)
        call = self.call(node, (value, *node.arguments[1:]), layout=new)
        return self.back(call, old, new)

    def pair(self, old: syntax.Call, node: syntax.Call) -> syntax.Expr:
        """An operator of two operands, one of which, or both, are to be had in a new layout."""
        known = [self.carried.get(a) for a in node.arguments]
        one = known[0] or known[1]
        if one is None or any(k and (k.old, k.new) != (one.old, one.new) for k in known):
            return node
        operands: list[syntax.Expr] = []
        for argument, before, held in zip(node.arguments, old.arguments, known, strict=True):
            if held is not None:
                operands.append(held.value)
                continue
            kind = self.kinds.get(before)
            if kind is None or not isinstance(kind.shape, tuple):
                return node
            rank = len(kind.shape)
            if rank > len(one.old):
                return node
            if 0 < rank < len(one.old):
                lacking = len(one.old) - rank
                argument = self.made("expand_dims", argument, axis=0, num_newaxis=lacking)
            operands.append(self.turned(argument, one.old, one.new) if rank else argument)
        return self.back(self.call(node, tuple(operands)), one.old, one.new)

    def joined(self, node: syntax.Call, fields: syntax.Tuple) -> syntax.Expr:
        known = [self.carried.get(f) for f in fields.fields]
        held = [k for k in known if k is not None]
        if not held or len(held) < len(known) or len({(k.old, k.new) for k in held}) > 1:
            return node
        old, new, axis = held[0].old, held[0].new, node.attributes["axis"]
        assert isinstance(axis, int)
        parts = syntax.Tuple(tuple(k.value for k in held), fields.span)
        return self.back(self.call(node, (parts,), axis=new.index(old[axis])), old, new)

    def turned(self, value: syntax.Expr, old: str, new: str) -> syntax.Expr:
        """A value in a new layout: as it was before it was brought back, if it was."""
        held = self.carried.get(value)
        if held is not None and (held.old, held.new) == (old, new):
            return held.value
        if old == new:
            return value
        return self.made("layout_transform", value, src_layout=old, dst_layout=new)

    def back(self, value: syntax.Expr, old: str, new: str) -> syntax.Expr:
        """A value as its readers know it; those that can, read it as it is."""
        found = self.made("layout_transform", value, src_layout=new, dst_layout=old)
        self.carried[found] = _Carried(value, old, new)
        return found

    def made(self, name: str, *args: syntax.Expr, **attributes: syntax.AttrValue) -> syntax.Call:
        return operator_call(syntax.Op(name), args, attributes, args[0].span)

    def call(
        self, node: syntax.Call, args: tuple[syntax.Expr, ...], **changed: syntax.AttrValue
    ) -> syntax.Call:
        attributes = {**node.attributes, **changed}
        given = tuple(dict.fromkeys((*node.given, *changed)))
        return replace(node, arguments=args, attributes=attributes, given=given)
