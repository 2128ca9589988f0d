"""Which rule takes which stages of a kernel: groups of stages first, then each by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from unity.ir.stmt import Buffer, Seq, Stmt, Store
from unity.ir.visit import stmt_loads, walk_stmt
from unity.machine.target import Target

from ..blocks.access import all_axes
from ..blocks.extents import number
from ..blocks.nest import Axis, Nest, nest_of
from ..roles.attention import row_chain
from ..roles.padding import unpadded
from ..roles.row_group import row_group
from ..roles.winograd import tile_group
from ..tactics.epilogue import fused
from .attention.blocks import chain_blocks
from .attention.matrix_tiles import chain_tiles
from .contraction.panels import panels_read
from .contraction.plain import plain
from .contraction.split_reduction import in_pieces
from .convolution.blocked import blocked
from .fallback import fallback
from .rows.long_rows import rows_on_threads
from .slabs import slab_by_slab, slabs
from .table import chosen
from .winograd.tiles import tiles


@dataclass(frozen=True, slots=True)
class Part:
    """A stage, with what is done in its write-back.

    Attributes:
        stage: The stage, or a statement that is none.
        behind: The names of the stages that it does in its write-back.
    """

    stage: Nest | Stmt
    behind: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The stages' names; none of what is no stage."""
        return (self.stage.name, *self.behind) if isinstance(self.stage, Nest) else self.behind


@dataclass(frozen=True, slots=True)
class Taken:
    """Some parts of a kernel in a row, and the rule that takes them.

    Attributes:
        rule: Its name.
        parts: What it takes.
        stmt: How it lays them out.
    """

    rule: str
    parts: tuple[Part, ...]
    stmt: Stmt

    @property
    def names(self) -> tuple[str, ...]:
        """The stages' names."""
        return tuple(name for part in self.parts for name in part.names)


def parts_of(stages: Sequence[Stmt], temporaries: set[Buffer]) -> list[Part]:
    """The stages, each reduction with the elementwise one behind it that alone reads its result."""
    nests = [nest_of(s) or s for s in stages]
    readers = Counter(b for stage in nests for b in _buffers_read(stage))
    result: list[Part] = []
    for nest in nests:
        last = result[-1] if result else None
        if last is not None and isinstance(last.stage, Nest) and isinstance(nest, Nest):
            private = last.stage.output in temporaries and readers[last.stage.output] == 1
            joined = fused(last.stage, nest) if private else None
            if joined is not None:
                result[-1] = Part(joined, (*last.behind, nest.name))
                continue
        result.append(Part(nest))
    return result


def cover(parts: Sequence[Part], temporaries: set[Buffer], target: Target) -> list[Taken]:
    """The rules that lay a kernel out, in the order of its stages."""
    return _without_points(parts, target) or _by_rule(parts, temporaries, target)


def _without_points(parts: Sequence[Part], target: Target) -> list[Taken]:
    """The stages of a kernel where one runs over nothing, each by itself; none where none does.

    A stage without points goes, and one that reduces nothing gives its first value: what rules
    count in, tiles and rows and strides, has no meaning there.
    """
    if not any(isinstance(p.stage, Nest) and _is_empty(all_axes(p.stage)) for p in parts):
        return []
    result: list[Taken] = []
    for part in parts:
        stage = part.stage
        if not isinstance(stage, Nest) or not _is_empty(all_axes(stage)):
            result.append(_alone(part, target))
            continue
        bare = None if _is_empty(stage.axes) else plain(stage, target)
        result.append(Taken("no points", (part,), Seq(()) if bare is None else bare))
    return result


def _is_empty(axes: Sequence[Axis]) -> bool:
    return any(number(a.extent) == 0 for a in axes)


def _by_rule(parts: Sequence[Part], temporaries: set[Buffer], target: Target) -> list[Taken]:
    """Chains over the same tiles or rows together, every other stage by itself."""
    stages = [p.stage for p in parts]
    tiled = tile_group(stages, temporaries, target)
    if tiled is not None:
        return [Taken("winograd", tuple(parts), tiles(tiled, target))]
    result: list[Taken] = []
    at = 0

    def take(rule: str, count: int, stmt: Stmt) -> None:
        nonlocal at
        result.append(Taken(rule, tuple(parts[at : at + count]), stmt))
        at += count

    while at < len(stages):
        read_through = _without_copy(stages, at, temporaries, target)
        if read_through is not None:
            take(*read_through)
            continue
        read = product_read_in_tile(stages, at, temporaries, target)
        if read is not None:
            take("panels_read", len(stages) - at, read)
            continue
        chain = row_chain(stages[at:], temporaries, target)
        if chain is not None:
            in_tiles = chain_tiles(chain, target)
            if in_tiles is None:
                take("chain_blocks", len(chain.stages), chain_blocks(chain, target))
            else:
                take("chain_tiles", len(chain.stages), in_tiles)
            continue
        group = row_group(stages[at:])
        if group is None:
            result.append(_alone(parts[at], target))
            at += 1
            continue
        end = at + len(group.stages)
        others = {b for s in (*stages[:at], *stages[end:]) for b in touched(s)}
        take("rows", len(group.stages), rows_on_threads(group, temporaries - others, target))
    return result


def _alone(part: Part, target: Target) -> Taken:
    """A part by itself, its sums in pieces where threads would be idle."""
    stage = part.stage
    if not isinstance(stage, Nest):
        return Taken("fallback", (part,), fallback(stage, target))
    rule, whole = chosen(stage, target)
    pieces = in_pieces(stage, whole, target)
    if pieces is not None:
        return Taken("split_reduction", (part,), pieces)
    return Taken(rule, (part,), whole)


def product_read_in_tile(
    stages: Sequence[Nest | Stmt], at: int, temporaries: set[Buffer], target: Target
) -> Stmt | None:
    """A product with all stages behind it, where these read its result point by point."""
    nests = [s for s in stages[at:] if isinstance(s, Nest)]
    if len(nests) < len(stages) - at or len(nests) < 2:
        return None
    others = {b for s in stages[:at] for b in touched(s)}
    return panels_read(nests[0], nests[1:], temporaries - others, target)


def _without_copy(
    stages: Sequence[Nest | Stmt], at: int, temporaries: set[Buffer], target: Target
) -> tuple[str, int, Stmt] | None:
    """A stage that pads and the one that reads the copy, laid out without it where a rule can.

    Else with one of a slab that stays in a cache, where the stages go over the same slabs.
    """
    pad, *after = stages[at : at + 2]
    if not isinstance(pad, Nest) or pad.output not in temporaries or not after:
        return None
    (stage,) = after
    others = (s for i, s in enumerate(stages) if i not in (at, at + 1))
    if not isinstance(stage, Nest) or any(pad.output in touched(s) for s in others):
        return None
    joined = unpadded(pad, stage)
    through = None if joined is None else blocked(joined, target)
    if through is not None:
        return "blocked", 2, through
    found = slabs(pad, stage, target)
    return None if found is None else ("slabs", 2, slab_by_slab(found, target))


def touched(stage: Nest | Stmt) -> set[Buffer]:
    """The buffers that a stage reads or stores to."""
    if isinstance(stage, Nest):
        return {x.buffer for x in stage.loads()} | {x.buffer for x in stage.stores()}
    loaded = {x.buffer for s in walk_stmt(stage) for x in stmt_loads(s)}
    return loaded | {s.buffer for s in walk_stmt(stage) if isinstance(s, Store)}


def _buffers_read(stage: Nest | Stmt) -> set[Buffer]:
    if isinstance(stage, Nest):
        return {x.buffer for x in stage.loads()}
    return {x.buffer for s in walk_stmt(stage) for x in stmt_loads(s)}
