"""Dot products of narrow numbers that machines have as instructions: the one table of them.

All add products of groups of 4 bytes to sums of 4 bytes: ``out[n] += left[p] * right[n, p]``, ``p``
counting the numbers of a group (AVX2's needs an addition besides). They come in two forms:

- ``lanes``: a vector register of sums, a group that all its lanes share, a register of groups.
- ``tile``: AMX. 16 rows of 16 sums, each over 16 groups of depth.

Which features they need and what LLVM calls them is from LLVM's IntrinsicsX86.td; what they compute
from Intel's intrinsics guide. Nothing but features decides whether a target has one, so a backend's
targets get them by naming these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from unity.ir.dtype import BFLOAT16, FLOAT32, INT8, INT16, INT32, UINT8, DType

from .target import Target

DotForm: TypeAlias = Literal["lanes", "tile"]

GROUP_BYTES = 4
"""Bytes of a group, what a dot product adds up at once."""
SIDE = 16
"""Rows of a tile, columns of one of sums, and groups of depth that it takes in a step."""
TILE_ROW_BYTES = 64
"""Bytes of a tile's row, as of palette 1 of AMX."""
TILE_REGISTERS = 8
"""Tile registers of a core, as of palette 1 of AMX."""
LANE_COUNTS = (4, 8, 16)
"""Sums of a register that dot products of lanes come with: 128, 256 and 512 bits."""
_NARROW_LANES = "avx512vl"
"""What dot products of fewer than 512 bits need besides."""


@dataclass(frozen=True, slots=True)
class DotUnit:
    """An instruction that adds up dot products.

    Attributes:
        name: What it is called in names of tensor intrinsics.
        form: Whether it works on vector registers or on tiles.
        left: The type of the left operand's numbers.
        right: That of the right one's, grouped along the depth.
        out: That of the sums.
        features: What a target needs, by LLVM's names; the first tells the unit.
        intrinsic: LLVM's function, without the number of bits where there are several widths.
        lane_counts: Sums of a register that it comes with, if it works on these.
        adds: Whether the instruction adds to sums itself.
    """

    name: str
    form: DotForm
    left: DType
    right: DType
    out: DType
    features: tuple[str, ...]
    intrinsic: str
    lane_counts: tuple[int, ...] = LANE_COUNTS
    adds: bool = True

    def needs(self, lanes: int = LANE_COUNTS[-1]) -> tuple[str, ...]:
        """The features it needs with so many sums in a register (of a tile, it is all the same)."""
        narrow = self.form == "lanes" and lanes < self.lane_counts[-1]
        return (*self.features, _NARROW_LANES) if narrow else self.features

    def on(self, target: Target) -> bool:
        """Whether a target has it, in registers of its width."""
        lanes = target.vector_bits // self.out.bits
        if self.form == "lanes" and lanes not in self.lane_counts:
            return False
        return all(map(target.has, self.needs(lanes)))


def _tile(name: str, left: DType, right: DType, out: DType, feature: str, suffix: str) -> DotUnit:
    return DotUnit(name, "tile", left, right, out, (feature, "amx-tile"), f"llvm.x86.{suffix}")


DOT_UNITS: tuple[DotUnit, ...] = (
    _tile("amx_bf16", BFLOAT16, BFLOAT16, FLOAT32, "amx-bf16", "tdpbf16ps"),
    _tile("amx_u8s8", UINT8, INT8, INT32, "amx-int8", "tdpbusd"),
    _tile("amx_s8s8", INT8, INT8, INT32, "amx-int8", "tdpbssd"),
    _tile("amx_u8u8", UINT8, UINT8, INT32, "amx-int8", "tdpbuud"),
    _tile("amx_s8u8", INT8, UINT8, INT32, "amx-int8", "tdpbsud"),
    DotUnit(
        "avx512bf16", "lanes", BFLOAT16, BFLOAT16, FLOAT32,
        ("avx512bf16",), "llvm.x86.avx512bf16.dpbf16ps",
    ),
    DotUnit(
        "vnni_u8s8", "lanes", UINT8, INT8, INT32,
        ("avx512vnni",), "llvm.x86.avx512.vpdpbusd",
    ),
    DotUnit(
        "avx2_s16s16", "lanes", INT16, INT16, INT32,
        ("avx2",), "llvm.x86.avx2.pmadd.wd", (8,), adds=False,
    ),
)  # fmt: skip
"""All there are. AVX-VNNI, NEON's dot products and SME are not written yet: a row each."""

DOT_FEATURES: tuple[str, ...] = tuple(
    dict.fromkeys(f for unit in DOT_UNITS for f in unit.needs(unit.lane_counts[0]))
)
"""Every feature that some unit needs."""


def dot_unit(form: DotForm, left: DType, right: DType, out: DType) -> DotUnit | None:
    """The unit of a form that multiplies numbers of two types and adds up in a third."""
    wanted = (form, left, right, out)
    return next((u for u in DOT_UNITS if (u.form, u.left, u.right, u.out) == wanted), None)


def has_dot(target: Target, form: DotForm, left: DType, right: DType, out: DType) -> bool:
    """Whether a target adds up such products by an instruction.

    >>> spr = Target("cpu", "x86_64-unknown-linux-gnu", "sapphirerapids", ("amx-bf16", "amx-tile"))
    >>> has_dot(spr, "tile", BFLOAT16, BFLOAT16, FLOAT32), has_dot(spr, "tile", INT8, INT8, INT32)
    (True, False)
    """
    unit = dot_unit(form, left, right, out)
    return unit is not None and unit.on(target)


INTEGER_OPERANDS: tuple[tuple[DType, DType], ...] = ((UINT8, INT8), (INT16, INT16))
"""What integers of 8 bits are multiplied as, with sums in int32; the first is the best."""


def integer_dots(target: Target) -> tuple[DotForm, DType, DType] | None:
    """How a target adds up dot products of 8-bit integers, and as what types it takes them.

    >>> haswell = Target("cpu", "x86_64-unknown-linux-gnu", "haswell", ("avx2", "fma"), 256)
    >>> [str(x) for x in integer_dots(haswell) or ()]
    ['lanes', 'int16', 'int16']
    """
    forms: tuple[DotForm, ...] = ("tile", "lanes")
    for left, right in INTEGER_OPERANDS:
        for form in forms:
            if has_dot(target, form, left, right, INT32):
                return form, left, right
    return None


def group_of(dtype: DType) -> int:
    """How many numbers of a type lie in a group."""
    return GROUP_BYTES * 8 // dtype.bits


def depth_of(dtype: DType) -> int:
    """How many numbers of a type a step on tiles takes of the depth."""
    return SIDE * group_of(dtype)
