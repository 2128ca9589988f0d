"""Tile sizes of a log as decisions for kernels of ours, where they are legal.

A kernel is what a task was if the shapes are the same: a convolution of an image of so many
channels, a product of so many rows. Whether a tile that was best for TVM's code is good for ours
only measuring tells: nothing is applied unasked.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from logging import getLogger
from math import prod
from typing import Any, ClassVar

import unity
from unity.ir.module import IRModule
from unity.ir.prim_expr import Imm
from unity.ir.stmt import Buffer, PrimFunc
from unity.machine.target import Target
from unity.transform import Context, Pass, Pipeline
from unity.transform.rules.decisions import AppliedRule
from unity.transform.schedule import ScheduleDefault, default_rules

from .records import CHANNELS, Record, best

log = getLogger("unity")


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a record says of a kernel.

    Attributes:
        record: The record.
        block: A block of the kernel, by whose name it is decided.
        decisions: What can be as the record says.
        refused: What can't be, each with what it may be.
    """

    record: Record
    block: str
    decisions: dict[str, int]
    refused: tuple[str, ...]


def candidate(records: Sequence[Record], func: PrimFunc, target: Target) -> Candidate | None:
    """What the fastest record of a kernel's task says of it; None if none is of such a task.

    Args:
        records: Those of a log.
        func: A kernel, as `pipeline().until(ScheduleDefault)` leaves it.
        target: The machine.
    """
    buffers = (p for p in func.params if isinstance(p, Buffer))
    shapes = [s for s in map(_shape, buffers) if s is not None]
    for record in best(records):
        if not record.decisions or not _is_of(record, shapes):
            continue
        for rule in default_rules(func, target):
            if "rows" in rule.decisions and "steps" in rule.decisions:
                return _legal(record, func, target, rule, _width(shapes))
    return None


def _legal(
    record: Record, func: PrimFunc, target: Target, rule: AppliedRule, width: int
) -> Candidate:
    """As much of a record as is legal, one decision after the other."""
    block = rule.blocks[0]
    wanted = dict(record.decisions)
    channels = wanted.pop(CHANNELS, None)
    if channels is not None and "columns" in rule.decisions:
        wanted = {"columns": max(1, channels // width), **wanted}
    taken: dict[str, int] = {}
    refused: list[str] = []
    for name, value in wanted.items():
        (now,) = [r for r in default_rules(func, target, {block: taken}) if block in r.blocks]
        if value in now.legal[name].values:
            taken[name] = value
        else:
            refused.append(f"{name}={value} is none of {list(now.legal[name].values)}")
    return Candidate(record, block, taken, tuple(refused))


@dataclass(frozen=True, slots=True)
class ScheduleByLog(Pass):
    """Lays out kernels that a log has records of by their tile sizes, as far as these are legal.

    Stands before `ScheduleDefault`, which lays out the others.

    Attributes:
        records: Those of the log.
    """

    records: tuple[Record, ...]
    sees: ClassVar = "kernel"

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each prim func by itself."""
        done: dict[str, PrimFunc] = {}
        for name, func in module.prim_funcs().items():
            found = candidate(self.records, func, ctx.target)
            if found is None:
                continue
            for what in found.refused:
                log.warning("%s, of the log's %s: %s", name, found.record.task, what)
            if found.decisions:
                chosen = ScheduleDefault({found.block: found.decisions})
                (done[name],) = chosen(IRModule({name: func}), ctx).prim_funcs().values()
        return module.with_(done) if done else module


def applied(records: Sequence[Record], passes: Pipeline | None = None) -> Pipeline:
    """A pipeline that takes the tile sizes of a log, for ``unity.compile(model, pipeline=)``.

    What is not legal is left to the default rules, with a warning (the logger ``unity``).

    Args:
        records: Those of a log, `read_log`.
        passes: A pipeline; that of the host's CPU if not given.
    """
    known = unity.pipeline("cpu") if passes is None else passes
    return known.insert_before(ScheduleDefault, ScheduleByLog(tuple(records)))


# ---- whether a kernel is what was tuned


def _shape(buffer: Buffer) -> tuple[int, ...] | None:
    known = tuple(d.value for d in buffer.shape if isinstance(d, Imm))
    shape = tuple(int(d) for d in known)
    return shape if len(shape) == len(buffer.shape) else None


def _width(shapes: Sequence[tuple[int, ...]]) -> int:
    """How many channels a block has: the last axis of an image in blocks."""
    return max((s[-1] for s in shapes if len(s) == 5), default=1)


def _is_of(record: Record, shapes: Sequence[tuple[int, ...]]) -> bool:
    tensors = [a for a in record.arguments if isinstance(a, tuple) and a]
    if len(tensors) < 2:
        return False
    with suppress(TypeError, ValueError, ZeroDivisionError):  # what a log says may be anything
        if record.task.startswith("conv2d"):
            task = _convolution(tensors[0], tensors[1], record.arguments[2:])
        else:
            task = _product(tensors[0], tensors[1])
        return task is not None and task.is_of(shapes)
    return False


@dataclass(frozen=True, slots=True)
class _Task:
    """What is known of a kernel by its task.

    Attributes:
        data: The shape of what it reads, (batch, channels, height, width) or (rows, columns).
        result: That of what it writes.
        weights: How many numbers its weights are.
    """

    data: tuple[int, ...]
    result: tuple[int, ...]
    weights: int

    def is_of(self, shapes: Sequence[tuple[int, ...]]) -> bool:
        """Whether a kernel with buffers of these shapes computes it."""
        padded = any(self.weights <= prod(s) < 2 * self.weights + 4096 for s in shapes)
        return padded and all(any(_holds(s, t) for s in shapes) for t in (self.data, self.result))


def _holds(shape: tuple[int, ...], tensor: tuple[int, ...]) -> bool:
    """Whether a buffer holds a tensor: as it is, or an image in blocks of channels."""
    if len(shape) != 5 or len(tensor) != 4:
        return shape == tensor
    batch, channels, *size = tensor
    return (shape[0], shape[1], *shape[2:4]) == (batch, -(-channels // shape[4]), *size)


def _convolution(data: Any, weight: Any, rest: Sequence[Any]) -> _Task | None:
    if len(data) == 5:  # in blocks: (batch, channels / 8, height, width, 8)
        data = (data[0], data[1] * data[4], data[2], data[3])
    if len(weight) == 6:
        weight = (weight[0] * weight[5], weight[1] * weight[4], weight[2], weight[3])
    if len(data) != 4 or len(weight) != 4 or len(rest) < 3:
        return None
    strides, dilation = _pair(rest[0]), _pair(rest[2])
    padding = rest[1] if isinstance(rest[1], list) and len(rest[1]) == 4 else _pair(rest[1]) * 2
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, weight[2:], strict=True)]
    size = [
        (data[2 + i] + padding[i] + padding[2 + i] - reach[i]) // strides[i] + 1 for i in (0, 1)
    ]
    return _Task(tuple(data), (data[0], weight[0], *size), prod(weight))


def _product(data: Any, weight: Any) -> _Task | None:
    """A matrix times one whose columns come first."""
    if len(data) != 2 or len(weight) != 2 or data[1] != weight[1]:
        return None
    return _Task(tuple(data), (data[0], weight[0]), prod(weight))


def _pair(value: Any) -> list[int]:
    found = [int(v) for v in value] if isinstance(value, list) else [int(value)]
    return found if len(found) == 2 else found[:1] * 2
