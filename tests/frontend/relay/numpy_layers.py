"""Layers as numpy says them, slowly: what Relay's are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt


def windows(
    extents: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Each place of a window over a padded tensor, and what it reads along the spatial axes."""
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    counts = [(n - r) // s + 1 for n, r, s in zip(extents, reach, strides, strict=True)]
    for place in product(*map(range, counts)):
        firsts = [p * s for p, s in zip(place, strides, strict=True)]
        parts = zip(firsts, reach, dilation, strict=True)
        yield place, tuple(slice(f, f + r, d) for f, r, d in parts)


def padded(x: npt.NDArray[Any], padding: Sequence[int], fill: float) -> npt.NDArray[Any]:
    """A tensor with its spatial axes padded: all begins, then all ends."""
    rank = x.ndim - 2
    pairs = [(0, 0), (0, 0), *zip(padding[:rank], padding[rank:], strict=True)]
    return np.pad(x, pairs, constant_values=fill)


def convolution(
    x: npt.NDArray[Any],
    weight: npt.NDArray[Any],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int = 1,
) -> npt.NDArray[Any]:
    """A convolution of channels first, in float64 or int64."""
    wide = np.float64 if x.dtype.kind == "f" else np.int64
    a, w = padded(x, padding, 0).astype(wide), weight.astype(wide)
    made, taken = w.shape[0] // groups, w.shape[1]
    rows: dict[tuple[int, ...], npt.NDArray[Any]] = {}
    for place, window in windows(a.shape[2:], w.shape[2:], strides, dilation):
        parts = []
        for g in range(groups):
            own = a[(slice(None), slice(g * taken, (g + 1) * taken), *window)]
            filters = w[g * made : (g + 1) * made]
            parts.append(own.reshape(len(own), -1) @ filters.reshape(made, -1).T)
        rows[place] = np.concatenate(parts, 1)
    counts = [n + 1 for n in max(rows)]
    found = np.empty((len(x), w.shape[0], *counts), wide)
    for place, row in rows.items():
        np.copyto(np.moveaxis(found, (0, 1), (-2, -1))[place], row)
    return found


def transposed_convolution(
    x: npt.NDArray[Any],
    weight: npt.NDArray[Any],
    strides: Sequence[int],
    padding: Sequence[int],
    extra: Sequence[int],
) -> npt.NDArray[Any]:
    """A transposed convolution: each element adds its filter where it stands."""
    kernel = weight.shape[2:]
    rank = len(kernel)
    whole = [(n - 1) * s + k for n, s, k in zip(x.shape[2:], strides, kernel, strict=True)]
    found = np.zeros((len(x), weight.shape[1], *(w + e for w, e in zip(whole, extra, strict=True))))
    for place in np.ndindex(*x.shape[2:]):
        own = x[(slice(None), slice(None), *place)].astype(np.float64)
        to = tuple(slice(p * s, p * s + k) for p, s, k in zip(place, strides, kernel, strict=True))
        found[(slice(None), slice(None), *to)] += np.tensordot(own, weight.astype(np.float64), 1)
    ends = [n - p for n, p in zip(found.shape[2:], padding[rank:], strict=True)]
    crop = tuple(slice(b, e) for b, e in zip(padding[:rank], ends, strict=True))
    return found[(slice(None), slice(None), *crop)]


def pooling(
    x: npt.NDArray[Any],
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    reduce: Callable[[npt.NDArray[Any]], npt.NDArray[Any]],
) -> npt.NDArray[Any]:
    """Windows of a tensor padded with NaN, each reduced over its last axis."""
    a = padded(x.astype(np.float64), padding, np.nan)
    rows = {
        place: reduce(a[(slice(None), slice(None), *window)].reshape(*a.shape[:2], -1))
        for place, window in windows(a.shape[2:], kernel, strides, dilation)
    }
    found = np.empty((*x.shape[:2], *(n + 1 for n in max(rows))))
    for place, row in rows.items():
        np.copyto(np.moveaxis(found, (0, 1), (-2, -1))[place], row)
    return found
