"""Relay files into modules in one call: `from_relay`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from unity.ir.dims import Dynamic
from unity.ir.dtype import Array
from unity.ir.module import IRModule

from .read import read_relay
from .translator import translate


def from_relay(
    source: str | Path | bytes,
    params: str | Path | Mapping[str, Array] | None = None,
    *,
    dynamic: Dynamic | None = None,
    constants: Sequence[Array] = (),
    examples: Mapping[str, object] | None = None,
) -> IRModule:
    """The module of a Relay model.

    Args:
        source: The path of a file: text, JSON of ``tvm.ir.save_json``, or a Model Library Format
            archive; or such a file's bytes; or text itself, if it has several lines.
        params: Values for parameters of `main`: the path of a parameter dictionary, or arrays.
            Parameters without a value are inputs.
        dynamic: Dims of inputs to change, as in `unity.compile`: ``{"x": {0: "n"}}``.
        constants: What ``meta[relay.Constant][i]`` stands for in a text without its metadata.
        examples: Of inputs of declared types (lists, trees), by name, a value that goes as far as
            those that the program is for: ``("Cons", None, ("Nil",))``, by the constructors' names
            or tags, with None or arrays for tensors; ``[None, None]`` for a list of two.

    Returns:
        A module with the graph function ``main``, and with those that call themselves. Its
        attribute ``input_names`` has the model's own names.

    Raises:
        UnityError: The file is damaged, or the model is ill-formed; the place is told.
        UnsupportedError: It uses what is refused; everything is listed, with place and reason.
    """
    read = read_relay(source, params, constants=constants)
    return translate(read, dynamic=dynamic, examples=examples)
