"""Constructors of nodes take and do what a dataclass's own do."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import cast

import pytest

from unity.ir.dims import Facts
from unity.ir.dtype import BOOL, FLOAT32, INT64, DType
from unity.ir.leaves import leaves
from unity.ir.prim_expr import (
    Binary,
    Broadcast,
    Compare,
    Imm,
    Intrinsic,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
    imm,
)
from unity.ir.stmt import Buffer
from unity.quick_init import quick_init


def test_fields_by_position_by_name_and_by_default() -> None:
    a, b = imm(1), imm(2)
    assert Binary("add", a, b) == Binary(b=b, a=a, op="add")
    assert Intrinsic("exp", (a,), FLOAT32).attrs == Intrinsic("exp", (a,), FLOAT32).attrs
    assert replace(Binary("add", a, b), op="sub") == Binary("sub", a, b)


def test_nodes_stay_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(Imm(1, INT64), "value", 2)  # noqa: B010
    make = cast("Callable[..., object]", Binary)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        make("add", imm(1))


def test_what_does_more_than_set_its_fields_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Listed\.items is more than set"):

        @quick_init
        @dataclass(frozen=True, slots=True)
        class Listed:
            items: list[int] = field(default_factory=list)


def test_equal_as_dataclasses_are() -> None:
    a, nan = imm(1), float("nan")
    assert Binary("add", a, imm(2000)) == Binary("add", a, imm(2000))
    assert Binary("add", a, a) != Binary("sub", a, a)
    assert Compare("lt", a, a) not in [Binary("add", a, a), a]
    assert Imm(nan, FLOAT32) == Imm(nan, FLOAT32)  # as tuples compare: one object is itself
    assert Imm(nan, FLOAT32) != Imm(float("nan"), FLOAT32)
    assert SizeVar("n") == SizeVar("n") != SizeVar("n", Facts(multiple_of=8))
    assert PrimVar("i") != PrimVar("i")


def test_equality_ignores_what_the_dataclass_ignores() -> None:
    @quick_init
    @dataclass(frozen=True, slots=True)
    class Placed:
        value: int
        at: int = field(default=0, compare=False)

    assert Placed(1, 2) == Placed(1, 3)
    assert Placed(1, 2) != Placed(2, 2)


def test_numbers_are_one_node_and_keep_their_types() -> None:
    assert imm(7) is imm(7)
    assert imm(True) == imm(1)
    assert type(imm(1, FLOAT32).value) is float
    assert imm(-1).value == -1


BUFFER = Buffer("x", (imm(8),), FLOAT32)
LESS = Compare("lt", imm(1), SizeVar("n"))


@pytest.mark.parametrize(
    ("node", "dtype"),
    [
        (Binary("add", imm(1.0, FLOAT32), imm(2.0, FLOAT32)), FLOAT32),
        (LESS, BOOL),
        (Compare("eq", Ramp(imm(0), imm(1), 4), Broadcast(imm(2), 4)), BOOL.with_lanes(4)),
        (Not(LESS), BOOL),
        (Select(LESS, imm(1.0, FLOAT32), imm(2.0, FLOAT32)), FLOAT32),
        (Load(BUFFER, (imm(1),)), FLOAT32),
        (Load(BUFFER, (Ramp(imm(0), imm(1), 8),)), FLOAT32.with_lanes(8)),
        (Ramp(imm(0), imm(1), 4), INT64.with_lanes(4)),
        (Broadcast(imm(2), 4), INT64.with_lanes(4)),
    ],
)
def test_what_is_computed_has_the_dtype_of_its_operands(node: PrimExpr, dtype: DType) -> None:
    assert node.dtype is dtype
    assert replace(node).dtype is dtype  # made anew
    assert copy.copy(node) == node


def test_copies_find_anew_what_was_found() -> None:
    i, n = PrimVar("i"), SizeVar("n")
    e = i * 8 + n
    assert leaves(e).sizes == {n}
    copied = copy.deepcopy(e)
    assert leaves(copied).sizes == {n}
    assert hash(copied.b) == hash(n)
    assert isinstance(copied.a, Binary)
    assert leaves(copied).variables == {copied.a.a} != {i}  # variables are equal by identity
