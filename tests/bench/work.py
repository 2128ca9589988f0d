"""What is measured: a model, its inputs, and how much there is to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

Array = npt.NDArray[np.generic]
Feeds = dict[str, Array]


@dataclass(frozen=True, slots=True)
class Work:
    """A model: `build()` makes it, `feeds(length)` makes inputs.

    Attributes:
        build: Makes the ONNX model, the same one every time.
        feeds: Inputs of a length.
        lengths: Those worth trying; one that says nothing where the shapes are fixed.
        gflop: Billions of floating-point operations, 0 if nobody counted.
        gbyte: Billions of bytes that must be read and written.
        session: Whether Unity keeps the caches itself, in a session.
    """

    build: Callable[[], onnx.ModelProto]
    feeds: Callable[[int], Feeds]
    lengths: tuple[int, ...] = (1,)
    gflop: float = 0.0
    gbyte: float = 0.0
    session: bool = False
