"""Which convolutions stand together: blocks would be made for one alone that no other is near.

A convolution of single pixels is a product of the weights and the image as it lies,
``(o, c) @ (c, h * w)``. Blocks are no better for it, and cost a pass over the input and the output;
but where pixels are few and fill no registers, that is less than what lanes compute for nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from math import prod

from unity.ir.dtype import FLOAT32
from unity.ir.graph import Call, Constant, Expr, Function, Op, Tuple, Var, VarBinding
from unity.ir.lattice import atom_type
from unity.ir.types import TensorType
from unity.ir.visit import walk_bindings
from unity.machine.target import Target
from unity.op.window import paddings, per_axis


def lone_products(
    function: Function,
    convolutions: Collection[str],
    pointwise: Collection[str],
    others: Collection[str],
    target: Target,
) -> frozenset[Var]:
    """The results of convolutions of single pixels that have only elementwise ops around them.

    Args:
        function: Where.
        convolutions: The names of those that take blocks.
        pointwise: The names of elementwise ops that take blocks.
        others: Those of others that do, besides convolutions: company to be in blocks for.
        target: The machine.
    """
    calls = {
        b.var: b.value
        for b in walk_bindings(function)
        if isinstance(b, VarBinding) and isinstance(b.value, Call)
    }
    found = {v: c for v, c in calls.items() if _is_of(c, convolutions)}
    others_there = [v for v, c in calls.items() if _is_of(c, others)]
    near = company(function, (*found, *others_there), pointwise)
    return frozenset(
        var
        for var, call in found.items()
        if near[var] == 1 and _is_product(call) and not _repays_blocks(call, target)
    )


def company(
    function: Function, counted: Collection[Var], through: Collection[str]
) -> dict[Var, int]:
    """How many of some results stand together with each of them, itself among them.

    Args:
        function: Where.
        counted: The results.
        through: The names of ops that join what they read and give.
    """
    root, inside = dict[Expr, Expr](), frozenset(counted)

    def find(x: Expr) -> Expr:
        while x in root:
            x = root[x]
        return x

    for binding in walk_bindings(function):
        value = binding.value
        if not isinstance(binding, VarBinding) or not isinstance(value, Call):
            continue
        if binding.var not in inside and not _is_of(value, through):
            continue
        for x in _images(value):
            a, b = find(x), find(binding.var)
            if a is not b:
                root[a] = b
    near = Counter(map(find, counted))
    return {var: near[find(var)] for var in counted}


def _is_of(call: Call, names: Collection[str]) -> bool:
    return isinstance(call.callee, Op) and call.callee.name in names


def _repays_blocks(call: Call, target: Target) -> bool:
    """Whether lanes past the last pixel cost more than to bring the image into blocks and back."""
    image, weight = call.args
    lanes = target.vector_bits // FLOAT32.bits
    match atom_type(image):
        case TensorType((int(images), _, *sizes), dtype) if dtype == FLOAT32:
            made, taken = (
                map(int, weight.data.shape[:2]) if isinstance(weight, Constant) else (1, 1)
            )
        case _:
            return False
    if made % lanes or taken % lanes:
        return False
    known = [e for e in sizes if isinstance(e, int)]
    if len(known) < len(sizes):
        return False
    pixels, machine = prod(known), target.machine
    wasted = images * made * taken * (-pixels % lanes) / lanes / machine.fma_per_cycle
    moved = images * (made + taken) * pixels * FLOAT32.bytes / machine.relayout_bytes_per_cycle
    return bool(wasted > moved)


def _images(call: Call) -> list[Var]:
    args = [f for a in call.args for f in (a.fields if isinstance(a, Tuple) else (a,))]
    return [a for a in args if isinstance(a, Var)]


def _is_product(call: Call) -> bool:
    weight = call.args[1]
    if not isinstance(weight, Constant) or set(weight.data.shape[2:]) != {1}:
        return False
    rank = weight.data.ndim - 2
    begin, end = paddings(call.attrs["padding"], rank)
    strides = per_axis("strides", call.attrs["strides"], rank, 1)
    return call.attrs["groups"] == 1 and set(strides) == {1} and not any((*begin, *end))
