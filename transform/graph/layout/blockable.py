"""What may lie in blocks of channels: images, and convolutions that gain by it.

Comes in: calls and their types. Goes out: facts, which `ConvertLayout` goes by, and those that ask
what it will do (merging of convolutions, forms of call sites).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from unity.ir.dims import Dim
from unity.ir.dtype import BFLOAT16, FLOAT16, FLOAT32, INT16, INT32, UINT8
from unity.ir.graph import Call, Constant, Expr, Function, Op, Var, VarBinding
from unity.ir.lattice import atom_dtype, atom_type
from unity.ir.types import TensorType
from unity.ir.visit import walk_bindings
from unity.machine.dot_units import INTEGER_OPERANDS
from unity.machine.target import Target
from unity.op.registry import dtype_attr
from unity.op.table import OPS

from .lone_convolutions import lone_products

POINTWISE = frozenset(name for name, op in OPS.items() if op.finite)
"""Elementwise ops that are done in blocks: what pads a block must stay finite.

So it does in a division by constants, none of which is zero.
"""

CONVOLUTIONS = {"nn.conv2d": "nn.conv2d_blocked", "nn.conv3d": "nn.conv3d_blocked"}
POOLS = {
    "nn.max_pool2d": "nn.max_pool3d",
    "nn.avg_pool2d": "nn.avg_pool3d",
    "nn.max_pool3d": "nn.max_pool3d",
    "nn.avg_pool3d": "nn.avg_pool3d",
}
"""What they become: of lines and pixels, one whose last axis are the lanes."""
_OF = (FLOAT32, FLOAT16, BFLOAT16, UINT8, INT16, INT32)
"""What images are of."""
WASTE = 1.5
"""How many times the channels there are may be computed."""
WASTE_TILES = 2
"""The same where matrix tiles do so at little cost."""
WASTE_BLOCKS = 1.25
"""The same of all convolutions of integers together, for blocks that fill rows of tiles."""


@dataclass(frozen=True, slots=True)
class Image:
    """A tensor of four or five axes whose channels are known.

    Attributes:
        batch: How many images.
        channels: Of each.
        sizes: Lines and pixels, before them frames if there are any.
    """

    batch: Dim
    channels: int
    sizes: tuple[Dim, ...]

    @property
    def shape(self) -> tuple[Dim, ...]:
        """As of an array."""
        return self.batch, self.channels, *self.sizes

    @property
    def pixels(self) -> int | None:
        """How many there are of each channel, where that is known."""
        known = [e for e in self.sizes if isinstance(e, int)]
        return prod(known) if len(known) == len(self.sizes) else None


def is_blockable(call: Call, image: Image, out: Image, lanes: int, waste: float = WASTE) -> bool:
    """Whether a convolution may take blocks.

    Args:
        call: A call of `nn.conv2d` or `nn.conv3d`.
        image: Its input.
        out: Its result.
        lanes: Channels of a block.
        waste: How many times the channels there are may be computed.
    """
    weight = call.args[1]
    if not isinstance(weight, Constant):
        return False
    if out.pixels is not None and out.pixels < min(lanes, 16):
        return False
    if call.attrs["data_layout"] not in ("NCHW", "NCDHW"):
        return False
    if not is_of_integers(call) and (
        call.attrs["out_dtype"] is not None or atom_dtype(call.args[0]) != FLOAT32
    ):
        return False
    if not is_depthwise(call) and call.attrs["groups"] != 1:
        return False
    return -(-out.channels // lanes) * lanes <= waste * out.channels


def is_depthwise(call: Call) -> bool:
    """Whether each channel of a convolution's result is one of its input by itself."""
    groups = call.attrs["groups"]
    match [atom_type(a) for a in call.args]:
        case [TensorType((_, c, *_)), TensorType((o, 1, *_))]:
            return groups == c == o and groups != 1
        case _:
            return False


def standing_alone(f: Function, target: Target) -> frozenset[Var]:
    """The results of convolutions of single pixels that blocks would be made for alone.

    Batch normalization counts as what it is folded into.
    """
    others = {*POOLS, "mean", "concat", "repeat"}
    return lone_products(f, CONVOLUTIONS, POINTWISE | {"nn.batch_norm", "astype"}, others, target)


def plain_products(f: Function, target: Target) -> frozenset[Var]:
    """The results of convolutions that stay as they are: those told so, and those that stand alone.

    Those told something else are not among them.
    """
    alone = standing_alone(f, target)
    told = {
        b.var: said
        for b in walk_bindings(f)
        if isinstance(b, VarBinding)
        and isinstance(b.value, Call)
        and isinstance(b.value.callee, Op)
        and b.value.callee.name in CONVOLUTIONS
        and (said := b.value.attrs.get("algorithm")) is not None
    }
    untold = frozenset(v for v in alone if v not in told)
    return untold | {v for v, said in told.items() if said == "gemm"}


def is_of_integers(call: Call) -> bool:
    """Whether a convolution multiplies integers as dot products take them, sums in int32.

    One of each channel by itself widens both: its weights may have 16 bits beside bytes.
    """
    if call.callee != Op("nn.conv2d") or call.attrs["out_dtype"] is None:
        return False
    match [atom_type(a) for a in call.args]:
        case [TensorType(_, left), TensorType(_, right)]:
            narrow = (left, right) in INTEGER_OPERANDS
            narrow = narrow or ((left, right) == (UINT8, INT16) and is_depthwise(call))
            return narrow and dtype_attr(call.attrs, "out_dtype") == INT32
        case _:
            return False


def fill_blocks(f: Function, block: int) -> bool:
    """Whether all convolutions are of integers, and of channels that nearly fill blocks.

    Sizes of their images are known, and fewer channels than a block are those of a line of taps.
    """
    used = padded = 0
    for binding in walk_bindings(f):
        call, out = binding.value, image_of(binding.var)
        if not isinstance(call, Call) or not isinstance(call.callee, Op):
            continue
        if call.callee.name not in CONVOLUTIONS:
            continue
        image, weight = image_of(call.args[0]), call.args[1]
        if image is None or out is None or out.pixels is None or image.pixels is None:
            return False
        whole = is_of_integers(call) and not is_depthwise(call)
        if not whole or not is_blockable(call, image, out, block):
            return False
        assert isinstance(weight, Constant)
        times = out.pixels * prod(weight.data.shape[2:])
        c, o = image.channels, out.channels
        used += c * o * times
        padded += (c if c < block else -(-c // block) * block) * -(-o // block) * block * times
    return 0 < padded <= WASTE_BLOCKS * used


def image_of(e: Expr) -> Image | None:
    """What is known of an image, if enough is: of floats, or integers of its own."""
    match atom_type(e) if isinstance(e, Var | Constant) else None:
        case TensorType((n, int(c), _, *_, _) as shape, dtype) if dtype in _OF:
            return Image(n, c, shape[2:]) if len(shape) in (4, 5) else None
        case _:
            return None
