"""Where the temporaries of a row group go: registers, a row's buffer, or the row of an output."""

from __future__ import annotations

from dataclasses import replace

from unity.ir.prim_expr import Load, PrimExpr, imm
from unity.ir.stmt import Buffer, Stmt, Store
from unity.ir.visit import rewrite_loads, rewrite_stmt

from ..blocks.extents import number, product
from ..blocks.nest import Axis, Nest
from ..roles.row_group import RowGroup

ROW_BYTES = 128 << 10
"""Bytes of a row up to which a temporary gets a buffer of its own on the stack."""


def stored_in_rows(
    group: RowGroup,
    private: set[Buffer],
    silent: set[Buffer],
    lanes: int,
    short: bool,
) -> tuple[RowGroup, list[Buffer]]:
    """The group with its private temporaries shrunk to a row, and the buffers of a row it needs.

    Args:
        group: The stages.
        private: Temporaries that only the group uses.
        silent: Those of them that are never stored: they pass from stage to stage in registers.
        lanes: Rows are padded to a multiple of it, so that nobody need mask accesses to them.
        short: Whether rows fit in registers: then they are not kept in an output.

    A number a row goes to a buffer of one element. Elements go to an output's row, if one of that
    type is written at the same points no sooner than the temporary was read last: that costs no
    memory, whatever the length of the row. Else they go to a buffer, if the length is known.
    What fits nowhere stays as it is.
    """
    moved: dict[Buffer, tuple[Buffer, tuple[PrimExpr, ...]]] = {}
    local: list[Buffer] = []
    hosted: list[tuple[Buffer, int, int]] = []
    for at, stage in enumerate(group.stages):
        for store in stage.stores():
            old = store.buffer
            if old not in private or old in silent:
                continue
            over_elements = stage.reduction is None and not group.is_scalar(stage)
            if not over_elements:
                new = Buffer(old.name, (imm(1),), old.dtype, scope="local")
                moved[old] = new, (imm(0),)
                local.append(new)
                continue
            last = _last_use(group, old)
            host = None if short else _host(group, store, private, (at, last), hosted)
            if host is not None:
                hosted.append((host, at, last))
                moved[old] = host, store.indices
                continue
            row = _row_buffer(old, group.inner, lanes)
            if row is not None:
                moved[old] = row, tuple(a.var for a in group.inner)
                local.append(row)
    stages = tuple(rewritten(stage, moved) for stage in group.stages)
    return replace(group, stages=stages), local


def _last_use(group: RowGroup, buffer: Buffer) -> int:
    return max(
        at
        for at, stage in enumerate(group.stages)
        if any(x.buffer is buffer for x in stage.loads())
        or any(x.buffer is buffer for x in stage.stores())
    )


def _host(
    group: RowGroup,
    store: Store,
    private: set[Buffer],
    live: tuple[int, int],
    hosted: list[tuple[Buffer, int, int]],
) -> Buffer | None:
    """An output whose row may hold a temporary from one stage to another."""
    old = store.buffer
    for at, stage in enumerate(group.stages):
        if at < live[1]:
            continue
        for other in stage.stores():
            host = other.buffer
            alike = host.dtype == old.dtype and host.shape == old.shape
            if host in private or not alike or other.indices != store.indices:
                continue
            if host.strides is not None or old.strides is not None:
                continue
            if all(h is not host or e <= live[0] or live[1] <= b for h, b, e in hosted):
                return host
    return None


def _row_buffer(old: Buffer, inner: tuple[Axis, ...], lanes: int) -> Buffer | None:
    size = number(product([a.extent for a in inner]))
    last = number(inner[-1].extent)
    if size is None or last is None or size * old.dtype.bytes > ROW_BYTES:
        return None
    padded = imm(-(-last // lanes) * lanes)
    shape = (*(a.extent for a in inner[:-1]), padded)
    return Buffer(old.name, shape, old.dtype, scope="local", align=64)


def rewritten(stage: Nest, moved: dict[Buffer, tuple[Buffer, tuple[PrimExpr, ...]]]) -> Nest:
    """The stage with buffers replaced, each accessed at one place."""

    def on_load(e: Load) -> PrimExpr | None:
        if e.buffer in moved:
            return Load(*moved[e.buffer], e.predicate)
        return None

    def on_store(s: Stmt) -> Stmt | None:
        if isinstance(s, Store) and s.buffer in moved:
            buffer, indices = moved[s.buffer]
            return Store(buffer, indices, s.value)
        return None

    reduction = stage.reduction
    if reduction is not None:
        value = rewrite_loads(reduction.value, on_load)
        reduction = replace(reduction, value=value, init=rewrite_loads(reduction.init, on_load))
    return replace(
        stage, reduction=reduction, finish=rewrite_stmt(stage.finish, on_store, load_fn=on_load)
    )
