"""Attention of several heads, with rotary positions and a cache of keys and values."""

from __future__ import annotations

from dataclasses import dataclass

from unity.arguments import public_class
from unity.errors import UnityError
from unity.ir.dims import Dim

from .layers import Linear, require_positive
from .module import Module
from .value import Value, ops


@dataclass(slots=True, eq=False)
class KVCache:
    """Keys and values of earlier positions, with room behind them.

    Attributes:
        keys: (batch, length + room, heads, size).
        values: Likewise.
        length: How many positions are there before the new ones.
    """

    keys: Value
    values: Value
    length: Dim

    def append(self, keys: Value, values: Value) -> tuple[Value, Value]:
        """Write new positions behind the others; gives all that are there then.

        Args:
            keys: (batch, new, heads, size); there must be room for them.
            values: Likewise.
        """
        new = keys.shape[1]
        options = {"length": self.length, "axis": 1}
        self.keys = ops.nn.cache_append(self.keys, keys, **options)
        self.values = ops.nn.cache_append(self.values, values, **options)
        self.length = self.length + new
        return self.keys[:, : self.length], self.values[:, : self.length]


@public_class
class Attention(Module):
    """Attention among positions of one sequence; fewer heads of keys than of queries are shared.

    Args:
        features: Of each position, in and out.
        heads: Of queries.
        kv_heads: Of keys and values, as many as `heads` if not given.
        size: Of a head, ``features // heads`` if not given.
        bias: Whether the four products have one.
        causal: Whether a position sees those before it and itself only.
    """

    def __init__(
        self,
        features: int,
        heads: int,
        kv_heads: int | None = None,
        size: int | None = None,
        bias: bool = False,
        causal: bool = True,
    ) -> None:
        shared = heads if kv_heads is None else kv_heads
        require_positive("Attention", features=features, heads=heads, kv_heads=shared)
        if heads % shared:
            raise UnityError(f"{heads} heads can't share {shared}", hint="kv_heads divides heads")
        if size is None and features % heads:
            raise UnityError(f"{features} features are not in {heads} heads", hint="give size")
        self._size = features // heads if size is None else size
        self._heads, self._shared, self._causal = heads, shared, causal
        self.q_proj = Linear(features, heads * self._size, bias)
        self.k_proj = Linear(features, shared * self._size, bias)
        self.v_proj = Linear(features, shared * self._size, bias)
        self.o_proj = Linear(heads * self._size, features, bias)

    def forward(
        self,
        x: Value,
        cos: Value | None = None,
        sin: Value | None = None,
        cache: KVCache | None = None,
    ) -> Value:
        """What each position takes from those it sees.

        Args:
            x: (batch, positions, features).
            cos: For rotary positions: (positions, size) of what `rotated` multiplies by.
            sin: Likewise.
            cache: What is there of earlier positions; the new ones are added to it.
        """
        batch, positions, _ = x.shape
        q = self.q_proj(x).reshape(batch, positions, self._heads, self._size)
        k = self.k_proj(x).reshape(batch, positions, self._shared, self._size)
        v = self.v_proj(x).reshape(batch, positions, self._shared, self._size)
        if (cos is None) != (sin is None):
            raise UnityError("rotary positions need cosines and sines", hint="give cos and sin")
        if cos is not None and sin is not None:
            q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        if cache is not None:
            k, v = cache.append(k, v)
        mask = "BottomRight" if self._causal else None
        shared = self._shared if self._shared != self._heads else None
        y = ops.nn.attention(q, k, v, causal_mask=mask, kv_heads=shared)
        return self.o_proj(y.reshape(batch, positions, self._heads * self._size))


def rotated(x: Value, cos: Value, sin: Value) -> Value:
    """Heads turned by their positions: each pair (i, i + size / 2) by an angle of its own.

    Args:
        x: (batch, positions, heads, size).
        cos: (positions, size) cosines of the angles, both halves alike.
        sin: Their sines.
    """
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    crossed = ops.concat((-second, first), axis=-1)
    return x * cos[:, None, :] + crossed * sin[:, None, :]
