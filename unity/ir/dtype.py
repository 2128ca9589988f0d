"""Data types: the one table of element types, shared by graph, tensors, runtime and artifacts.

Imports numpy alone, so that the runtime can stand on this file without the compiler, and ml_dtypes
once a type is asked for that numpy lacks: that takes 0.15 to 0.5 s, most of what a process takes to
load an executable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Literal, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError

Kind: TypeAlias = Literal["float", "bfloat", "float8", "float4", "int", "uint", "bool", "handle"]
Array: TypeAlias = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """An element type and, in lowered kernels, its vector lanes; make one with `dtype`.

    There is one object of each, so that equality is identity: passes compare them by the million.
    """

    name: str
    lanes: int = 1

    def __new__(cls, name: str, lanes: int = 1) -> Self:
        """The one object of a name and lanes."""
        key = name, lanes
        return cast("Self", _MADE.get(key) or _MADE.setdefault(key, object.__new__(cls)))

    def __reduce__(self) -> tuple[type[DType], tuple[str, int]]:
        """A copy is the same object, in another process the one that is there."""
        return DType, (self.name, self.lanes)

    @property
    def kind(self) -> Kind:
        """The family the type belongs to."""
        return _ROWS[self.name].kind

    @property
    def bits(self) -> int:
        """Width of one element in bits."""
        return _ROWS[self.name].bits

    @property
    def bytes(self) -> int:
        """Bytes one element takes in memory (what is narrower takes one)."""
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        """Whether values are real numbers."""
        return self.name in _FLOATS

    @property
    def is_int(self) -> bool:
        """Whether values are integers, signed or not (bool is neither)."""
        return self.name in _INTS

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The numpy type that stores one element."""
        known = _ROWS[self.name].numpy
        return _of_ml_dtypes(self.name) if known is None else known

    def with_lanes(self, lanes: int) -> DType:
        """The vector type of `lanes` such elements."""
        if lanes == self.lanes:
            return self
        return _MADE.get((self.name, lanes)) or DType(self.name, lanes)

    @property
    def element(self) -> DType:
        """The scalar type."""
        return self.with_lanes(1)

    def __str__(self) -> str:
        """The name, with ``xN`` for a vector."""
        return self.name if self.lanes == 1 else f"{self.name}x{self.lanes}"


_MADE: dict[tuple[str, int], DType] = {}


@dataclass(frozen=True, slots=True)
class _Row:
    kind: Kind
    bits: int
    numpy: np.dtype[np.generic] | None
    """None for what `ml_dtypes` adds, by the same name."""


_ROWS: dict[str, _Row] = {
    "float16": _Row("float", 16, np.dtype(np.float16)),
    "float32": _Row("float", 32, np.dtype(np.float32)),
    "float64": _Row("float", 64, np.dtype(np.float64)),
    "bfloat16": _Row("bfloat", 16, None),
    "float8_e4m3fn": _Row("float8", 8, None),
    "float8_e4m3fnuz": _Row("float8", 8, None),
    "float8_e5m2": _Row("float8", 8, None),
    "float8_e5m2fnuz": _Row("float8", 8, None),
    "float4_e2m1fn": _Row("float4", 4, None),
    "int2": _Row("int", 2, None),
    "int4": _Row("int", 4, None),
    "int8": _Row("int", 8, np.dtype(np.int8)),
    "int16": _Row("int", 16, np.dtype(np.int16)),
    "int32": _Row("int", 32, np.dtype(np.int32)),
    "int64": _Row("int", 64, np.dtype(np.int64)),
    "uint2": _Row("uint", 2, None),
    "uint4": _Row("uint", 4, None),
    "uint8": _Row("uint", 8, np.dtype(np.uint8)),
    "uint16": _Row("uint", 16, np.dtype(np.uint16)),
    "uint32": _Row("uint", 32, np.dtype(np.uint32)),
    "uint64": _Row("uint", 64, np.dtype(np.uint64)),
    "bool": _Row("bool", 8, np.dtype(np.bool_)),
    "handle": _Row("handle", 64, np.dtype(np.uint64)),
}
_FLOATS = frozenset(n for n, r in _ROWS.items() if r.kind.startswith(("float", "bfloat")))
_INTS = frozenset(n for n, r in _ROWS.items() if r.kind in ("int", "uint"))
NAMES = frozenset(_ROWS)
"""What dtypes are called in full."""
_FROM_NUMPY: dict[np.dtype[np.generic], DType] = {
    row.numpy: DType(name)
    for name, row in _ROWS.items()
    if row.numpy is not None and name != "handle"
}
SHORT_NAMES: dict[str, str] = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f4e2m1": "float4_e2m1fn",
    "i2": "int2",
    "i4": "int4",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u2": "uint2",
    "u4": "uint4",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "boolean": "bool",
}
"""The names the language uses in annotations, ``f32[Tensor, n]``."""
_BY_NAME = {n: DType(n) for n in _ROWS} | {n: DType(of) for n, of in SHORT_NAMES.items()}


@cache
def _of_ml_dtypes(name: str) -> np.dtype[np.generic]:
    """The type of a name that numpy itself lacks."""
    found: np.dtype[np.generic] = np.dtype(getattr(import_module("ml_dtypes"), name))
    return found


def _from_numpy(given: np.dtype[np.generic]) -> DType | None:
    found = _FROM_NUMPY.get(given)
    if found is None and given.type.__module__.partition(".")[0] == "ml_dtypes":
        row = _ROWS.get(given.name)
        return None if row is None or row.numpy is not None else DType(given.name)
    return found


def dtype(of: str | DType | npt.DTypeLike) -> DType:
    """The `DType` of a name, a numpy dtype or a `DType`.

    >>> dtype("float32"), dtype(np.int8).bits, dtype("float32x16").lanes
    (DType(name='float32', lanes=1), 8, 16)

    Raises:
        UnityError: The type is unknown.
    """
    if isinstance(of, DType):
        return of
    if isinstance(of, str):
        known = _BY_NAME.get(of)
        if known is not None:
            return known
        name, _, lanes = of.partition("x")
        name = SHORT_NAMES.get(name, name)
        if name in _ROWS and (lanes.isdecimal() or not lanes):
            return DType(name, int(lanes) if lanes else 1)
    try:
        given = np.dtype(of)
        # codes of characters are no names: "n" would be int64, "float" numpy's float64
        found = None if isinstance(of, str) and given.name != of else _from_numpy(given)
    except (TypeError, ValueError):
        found = None
    if found is None:
        raise UnityError(
            f"unknown dtype {of!r}", hint=f"known dtypes: {', '.join(n for n in _ROWS)}"
        )
    return found


BOOL = DType("bool")
INT8 = DType("int8")
INT16 = DType("int16")
INT32 = DType("int32")
INT64 = DType("int64")
UINT8 = DType("uint8")
FLOAT16 = DType("float16")
BFLOAT16 = DType("bfloat16")
FLOAT32 = DType("float32")
FLOAT64 = DType("float64")
HANDLE = DType("handle")
RTOL = {"bfloat16": 5e-2, "float16": 1e-2, "float32": 1e-4, "float64": 1e-9}
"""How far results may differ that were rounded in another order, relative to the largest number."""


def scalar_fault(kind: DType, value: object) -> str | None:
    """Why a Python or numpy number can't be a scalar of a dtype, as the end of a message.

    >>> scalar_fault(dtype("uint8"), -3)
    'expected a number of dtype uint8 (0 to 255), got -3'
    >>> scalar_fault(dtype("float32"), 1), scalar_fault(dtype("bool"), 1)
    (None, 'expected a number of dtype bool, got 1')
    """
    number: object = value.item() if isinstance(value, np.generic) else value
    of = f"expected a number of dtype {kind}"
    if kind.kind == "bool" and isinstance(number, bool):
        return None
    if kind.kind == "bool" or isinstance(number, bool) or not isinstance(number, int | float):
        plain = isinstance(value, bool | int | float)
        return f"{of}, got {value!r}" if plain else f"{of}, got a {type(value).__name__}"
    if kind.is_int:
        if isinstance(number, float):
            return f"{of}, got {number!r}"
        low, high = int_range(kind)
        return None if low <= number <= high else f"{of} ({low} to {high}), got {number}"
    if _is_near(kind, number):
        return None
    most = f" (up to {float(np.finfo(kind.name).max):.8g})" if kind.kind == "float" else ""
    return f"{of}{most}, got {number!r}, which becomes infinite"


def int_range(kind: DType) -> tuple[int, int]:
    """The least and the greatest integer of a dtype of integers.

    >>> int_range(dtype("int8")), int_range(dtype("uint16"))
    ((-128, 127), (0, 65535))
    """
    low = -(1 << kind.bits - 1) if kind.kind == "int" else 0
    return low, low + (1 << kind.bits) - 1


def _is_near(kind: DType, number: float) -> bool:
    """Whether a number is finite in a dtype of floats, or was not before."""
    try:
        given = float(number)
    except OverflowError:  # of an int
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        held = float(np.asarray(given).astype(kind.numpy).astype(np.float64))
    return math.isfinite(held) or not math.isfinite(given)
