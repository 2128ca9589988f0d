"""Python text of what scripts that reproduce a failure hold: arrays, modules, how it fails."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unity.ir.dtype import Array, dtype
from unity.ir.module import IRModule
from unity.script import constants_of, print_module

ARRAY = """def array(values: object, shape: tuple[int, ...], kind: str) -> np.ndarray:
    return np.array(values, dtype(kind).numpy).reshape(shape)
"""
"""What a script makes its arrays by."""


def array_text(data: Array) -> str:
    """A call of `array` in a script that gives these values."""
    kind = dtype(data.dtype)
    flat = data.astype(np.float64) if kind.is_float else data
    values = ", ".join(repr(v) for v in flat.reshape(-1).tolist())
    return f'array([{values}], {data.shape}, "{kind}")'


def module_text(module: IRModule) -> str:
    """A call of `parse` that gives the module."""
    return (
        f"parse(\n    '''\n{print_module(module)}''',\n    {arrays_text(constants_of(module))},\n)"
    )


def arrays_text(arrays: Mapping[str, Array]) -> str:
    """A dict of arrays."""
    items = ", ".join(f"{name!r}: {array_text(data)}" for name, data in arrays.items())
    return f"{{{items}}}"


def heading(kind: str, failure: str) -> str:
    """The docstring of a script."""
    said = failure.replace("\\", "/").replace('"""', "'''")
    words = [said[i : i + 96] for i in range(0, min(len(said), 960), 96)]
    return "\n".join([f'"""Found by `python -m tests.fuzz {kind}`:', "", *words, '"""', ""])
