"""A function called with its inputs in a dict: names are sorted out once, not at each call.

This is how models are run, and a small one takes a few microseconds: what Python does here for
each call has to be a fraction of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unity.runtime.bytecode import FunctionCode

Results: TypeAlias = dict[str, npt.NDArray[Any]]
NamedCall: TypeAlias = Callable[[Mapping[str, object]], Results | None]
"""Results by name; None, with nothing done, for inputs that are not a dict of exactly these."""


def named_call(call: Callable[..., object], code: FunctionCode) -> NamedCall:
    """The function `call`, whose code is `code`, as one from a dict to a dict.

    Inputs have the names that the imported model gives them, else those of the parameters.
    """
    own = tuple(q.name for q in code.params)
    names = code.input_names[: len(own)] + own[len(code.input_names) :]
    count, outputs = len(names), code.output_names
    first = output_name(code, 0)

    def run(inputs: Mapping[str, object]) -> Results | None:
        if type(inputs) is not dict or len(inputs) != count:
            return None
        try:
            values = [inputs[name] for name in names]
        except KeyError:
            return None
        result = call(*values)
        if type(result) is np.ndarray:
            return {first: result}
        results = result if isinstance(result, tuple) else (result,)
        arrays = [r if type(r) is np.ndarray else as_result(r) for r in results]
        if len(arrays) == len(outputs):
            return dict(zip(outputs, arrays, strict=True))
        return {output_name(code, i): array for i, array in enumerate(arrays)}

    return run


def as_result(value: object) -> Any:
    """A result as an array; a list (of maps, of arrays), a tuple and None stay what they are."""
    return value if value is None or isinstance(value, list | tuple) else np.asarray(value)


def output_name(code: FunctionCode, index: int) -> str:
    """What a result is called: as in the imported model, else by its number."""
    return code.output_names[index] if index < len(code.output_names) else f"output{index}"
