"""GroupQueryAttention: several heads of queries for one of keys, over a cache that grows."""

from __future__ import annotations

from unity.frontend.sizes import sizes_of
from unity.ir.dims import Dim, as_dim, dim_max, equal
from unity.ir.dtype import INT64
from unity.ir.graph import Expr

from ..node import Converter, Node, Value
from .attention import LOWEST
from .heads import attended, barred, joined_heads, places, rotated, split_heads


def _grouped(node: Node) -> list[Value]:
    """Rows of each batch behind what its cache holds, whose lengths may differ.

    The cache that is given may be longer than what is valid of it; the one that comes out has room
    for the longest sequence.
    """
    heads, kv_heads = node.int_of("num_heads", 0), node.int_of("kv_num_heads", 0)
    if any(node.int_of(a, 0) for a in ("smooth_softmax", "qk_output", "kv_cache_bit_width")):
        raise node.gap("smooth softmax, scores given out, or a quantized cache")
    node.ignore("k_quant_type", "v_quant_type")
    if node.has(11):
        raise node.gap("sinks of heads")
    query, key, value = _operands(node, heads, kv_heads)
    batch, _, rows, _ = node.shape_of(query)
    (total,) = node.dims(6, "the total length")
    lengths = node.op("reshape", node.cast(node.tensor(5), INT64), (batch, 1))
    one = node.number(1, lengths)
    before = _past(node, lengths, one, rows, total)  # (batch, 1)
    at = node.op("add", before, places(node, rows, (1, rows)))
    if node.int_of("do_rotary", 0):
        places_of = node.cast(node.tensor(9), INT64) if node.has(9) else at
        interleaved = bool(node.int_of("rotary_interleaved", 0))
        turns = [
            node.op("expand_dims", node.op("take", node.tensor(k), places_of, axis=0), axis=1)
            for k in (7, 8)
        ]
        query, key = (
            rotated(node, x, turns[0], turns[1], interleaved=interleaved) for x in (query, key)
        )
    node.ignore("rotary_interleaved")
    extent = total
    if node.has(3):
        extent = as_dim(dim_max(total, node.shape_of(node.tensor(3))[2]))
    present = [_written(node, node.optional(3 + k), x, before, extent)
               for k, x in enumerate((key, value))]  # fmt: skip
    extent = node.shape_of(present[0])[2]
    seen = _seen(node, at, extent)
    added = barred(node, node.op("expand_dims", seen, axis=1), query, LOWEST)
    if node.has(10):
        added = node.binary("add", added, node.tensor(10))
    keys, values = (
        x if heads == kv_heads else node.op("repeat", x, repeats=heads // kv_heads, axis=1)
        for x in present
    )
    scale, softcap = node.float_of("scale", 0.0), node.float_of("softcap", 0.0)
    found, _ = attended(node, query, keys, values, added, scale, softcap)
    return [joined_heads(node, found), *present]


def _operands(node: Node, heads: int, kv_heads: int) -> tuple[Expr, Expr, Expr]:
    query = node.tensor(0)
    if node.has(1):
        key, value = (split_heads(node, node.tensor(k), kv_heads) for k in (1, 2))
        return split_heads(node, query, heads), key, value
    width = node.shape_of(query)[-1]
    if not isinstance(width, int):
        raise node.symbolic_gap("operands of unknown width", width)
    size = width // (heads + 2 * kv_heads)
    ends = (heads * size, (heads + kv_heads) * size)
    parts = node.op("split", query, ends, axis=-1)
    a, b, c = (
        split_heads(node, node.field(parts, k), n)
        for k, n in enumerate((heads, kv_heads, kv_heads))
    )
    return a, b, c


def _past(node: Node, lengths: Expr, one: Expr, rows: Dim, total: Dim) -> Expr:
    """How many rows each cache holds before: none where the rows are all there is."""
    row_count = node.materialize(sizes_of(rows))
    held = node.op("subtract", node.op("add", lengths, one), row_count)
    if equal(rows, total):
        return node.op("zeros_like", lengths)
    first = node.op("equal", node.materialize(sizes_of(total)), row_count)
    return node.op("where", first, node.number(0, lengths), held)


def _written(node: Node, past: Expr | None, new: Expr, before: Expr, extent: Dim) -> Expr:
    """A cache with new rows, in each batch from its own place on."""
    batch, heads, rows, size = node.shape_of(new)
    since = node.op("subtract", places(node, extent, (1, extent)), before)
    last = node.materialize(sizes_of(as_dim(rows - 1)))
    zero = node.number(0, since)
    inside = node.op(
        "logical_and", node.op("greater_equal", since, zero), node.op("less_equal", since, last)
    )
    along = (batch, 1, extent, 1)
    at = node.op("maximum", node.op("minimum", since, last), zero)
    whole = (batch, heads, extent, size)
    at = node.op("broadcast_to", node.op("reshape", at, along), whole)
    moved = node.op("gather_elements", new, at, axis=2)
    if past is None:
        old: Expr = node.op("zeros_like", moved)
    else:
        more = node.sized(as_dim(extent - node.shape_of(past)[2]), "more")
        widths = (0, 0, 0, 0, 0, more, 0, 0)
        padded = node.op("nn.pad", past, widths, pad_mode="constant", pad_value=0.0)
        old = node.assert_shape(padded, whole)
    return node.op("where", node.op("reshape", inside, along), moved, old)


def _seen(node: Node, at: Expr, extent: Dim) -> Expr:
    """Which keys each row sees: those up to its own place, of a window if there is one."""
    batch, rows = node.shape_of(at)
    own = node.op("reshape", at, (batch, rows, 1))
    key = places(node, extent, (1, 1, extent))
    seen = node.op("less_equal", key, own)
    window = node.int_of("local_window_size", -1)
    if window > 0:
        since = node.op("subtract", own, node.number(window, own))
        seen = node.op("logical_and", seen, node.op("greater", key, since))
    return seen


CONVERTERS: dict[str, Converter] = {"GroupQueryAttention": _grouped}
