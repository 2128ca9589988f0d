"""States of a Loop that no step reads: what the last step gives, whatever they begin as.

Paddle's exporter begins such with a scalar, where steps give a tensor of other rank. What is left
of one after no step at all would be that scalar; that there is a step is checked when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from unity.errors import UnityError
from unity.frontend.emission import Gap
from unity.frontend.run_time.slicing import scalar
from unity.frontend.run_time.vectors import matched
from unity.ir.dims import symbols_of
from unity.ir.dtype import INT64
from unity.ir.graph import Constant, Expr

from ..node import Node, Outcome
from ..sequences.held import Held
from .appended import names_read
from .states import State, enter, enter_step


def begun(node: Node, body: onnx.GraphProto, init: Sequence[Outcome]) -> list[Outcome]:
    """What states begin as, those that no step reads in the shape that steps give them."""
    read = {*names_read(body), *(o.name for o in body.output)}
    unread = [
        k
        for k, x in enumerate(init)
        if not isinstance(x, Held) and body.input[2 + k].name not in read
    ]
    if not unread or any(isinstance(x, Held) for x in init):
        return [*init]
    inner = node.graph.trial()
    enter_step(inner, body)
    within = Node(node.proto, inner, node.version)
    names = [info.name for info in body.input[2:]]
    enter(inner, within, [State(n, x) for n, x in zip(names, init, strict=True)])
    try:
        after = inner.inline(body)[1 : 1 + len(init)]
        kinds = {k: within.type_of(within.plain(after[k])) for k in unread}
    except (Gap, UnityError):
        return [*init]
    found, steps = [*init], False
    for k, kind in kinds.items():
        if kind.dtype is None or not isinstance(kind.shape, tuple):
            continue
        known = all(node.builder.has_symbol(s.name) for s in symbols_of(*kind.shape))
        if known and len(node.shape_of(node.plain(init[k]))) != len(kind.shape):
            zero = Constant(np.zeros((), kind.dtype.numpy))
            found[k], steps = node.op("full", kind.shape, zero, dtype=kind.dtype), True
    if steps:
        _require_a_step(node)
    return found


def _require_a_step(node: Node) -> None:
    holds: list[Expr] = []
    if node.has(0):
        count = scalar(node, node.tensor(0))
        holds.append(node.op("greater", count, node.number(0, count)))
    if node.has(1):
        holds.append(scalar(node, node.tensor(1)))
    for one in holds:
        truth = node.op("reshape", node.cast(one, INT64), (1,))
        if not isinstance(truth, Constant) or not truth.data.all():
            matched(node, truth, (1,), "takes_no_step")
