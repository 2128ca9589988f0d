"""Gathering, scattering, sorting, running sums."""

from __future__ import annotations

from unity.errors import UnityError
from unity.ir.dims import SymDim
from unity.ir.dtype import INT64

from .rule import NodeRule
from .writer import Arg, OpNode


def _take(n: OpNode) -> Arg:
    if n.attrs["axis"] is None:
        raise UnityError("takes an axis")
    return n.w.node("Gather", n.inputs, axis=n.axis())


def _gather_elements(n: OpNode) -> Arg:
    return n.w.node("GatherElements", n.inputs, axis=n.axis())


def _gather_nd(n: OpNode) -> Arg:
    return n.w.node("GatherND", n.inputs, batch_dims=n.integer("batch_dims"))


def _cumsum(n: OpNode) -> Arg:
    if n.attrs["axis"] is None or n.attrs["dtype"] not in (None, n.dtype()):
        raise UnityError("takes an axis, and gives the dtype of what it sums")
    return n.w.node(
        "CumSum",
        [n.input(0), n.w.scalar(n.axis(), INT64)],
        exclusive=int(n.flag("exclusive")),
        reverse=int(n.flag("reverse")),
    )


def _topk(n: OpNode) -> Arg:
    if n.attrs["dtype"] != INT64:
        raise UnityError("gives indices of int64")
    k = n.attrs["k"]
    assert isinstance(k, int | SymDim)
    count = n.w.vector((k,))
    largest = int(n.flag("largest"))
    return tuple(n.w.many("TopK", [n.input(0), count], 2, axis=n.axis(), largest=largest, sorted=1))


RULES: dict[str, NodeRule] = {
    "take": _take,
    "gather_elements": _gather_elements,
    "gather_nd": _gather_nd,
    "cumsum": _cumsum,
    "topk": _topk,
}
