"""Inputs for a model: from files the user names, or generated from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from unity.errors import UnityError
from unity.ir.dims import Dim, Symbol, dim_text, evaluate, symbols_of
from unity.ir.dtype import Array
from unity.ir.graph import Function
from unity.ir.module import IRModule
from unity.ir.types import TensorType

DEFAULT_SIZE = 4


def main_function(module: IRModule) -> Function:
    """The function that a model's run calls."""
    found = module["main"]
    assert isinstance(found, Function)
    return found


def feeds_for(function: Function, files: list[str], dims: list[str], seed: int) -> dict[str, Array]:
    """An array for every parameter, those without a file generated.

    Files name inputs as the model does or as the parameters are called.

    Raises:
        UnityError: A file, a name or a size does not fit.
    """
    read = _read(files)
    names = [p.name for p in function.params]
    own = dict(zip(_own_names(function), names, strict=True))
    unknown = sorted(set(read) - set(names) - set(own))
    if unknown:
        raise UnityError(
            f"the model has no input {', '.join(unknown)}", hint=f"its inputs: {', '.join(own)}"
        )
    given = {own.get(name, name): array for name, array in read.items()}
    sizes = _sizes(function, dims, given)
    rng = np.random.default_rng(seed)
    return {
        p.name: given[p.name] if p.name in given else _generate(p.name, p.type, sizes, rng)
        for p in function.params
    }


def named_as_in_the_model(function: Function, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The same arrays under the names that the imported model gives its inputs."""
    return dict(zip(_own_names(function), feeds.values(), strict=True))


def _own_names(function: Function) -> tuple[str, ...]:
    names = function.attrs.get("input_names", ())
    own = tuple(str(n) for n in names) if isinstance(names, tuple) else ()
    return own or tuple(p.name for p in function.params)


def _read(files: list[str]) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for text in files:
        name, separator, path = text.rpartition("=")
        try:
            loaded = np.load(Path(path), allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise UnityError(f"cannot read the input file {path}: {error}") from None
        if isinstance(loaded, np.ndarray):
            if not separator:
                raise UnityError(
                    f"{path} is one array", hint=f"say which input: --input NAME={path}"
                )
            arrays[name] = loaded
        else:
            arrays.update({key: loaded[key] for key in loaded.files})
    return arrays


def sizes_of(dims: list[str]) -> dict[str, int]:
    """The sizes that ``--dim`` options give, by symbol.

    Raises:
        UnityError: One is not written ``SYMBOL=SIZE``.
    """
    asked: dict[str, int] = {}
    for text in dims:
        name, _, size = text.partition("=")
        if not size.isdigit():
            raise UnityError(f"--dim {text}: give SYMBOL=SIZE, e.g. batch=4")
        asked[name] = int(size)
    return asked


def _sizes(function: Function, dims: list[str], given: Mapping[str, Array]) -> dict[Symbol, int]:
    asked = sizes_of(dims)
    sizes: dict[Symbol, int] = {}
    for p in function.params:
        if not isinstance(p.type, TensorType) or not isinstance(p.type.shape, tuple):
            continue
        for axis, d in enumerate(p.type.shape):
            for symbol in symbols_of(d):
                facts = symbol.facts
                default = max(DEFAULT_SIZE, facts.min)
                default = -(-default // facts.multiple_of) * facts.multiple_of
                if d == symbol and p.name in given and given[p.name].ndim > axis:
                    default = given[p.name].shape[axis]
                sizes[symbol] = asked.get(symbol.name, sizes.get(symbol, default))
    unknown = sorted(set(asked) - {s.name for s in sizes})
    if unknown:
        known = ", ".join(sorted(s.name for s in sizes)) or "none"
        raise UnityError(f"no symbol {', '.join(unknown)}", hint=f"the model's symbols: {known}")
    return sizes


def _generate(
    name: str, of: object, sizes: Mapping[Symbol, int], rng: np.random.Generator
) -> Array:
    if not isinstance(of, TensorType) or not isinstance(of.shape, tuple) or of.dtype is None:
        raise UnityError(f"the input {name} is no tensor of known shape", hint="give it a file")
    shape = tuple(evaluate(d, sizes) for d in of.shape)
    kind = of.dtype.kind
    if kind == "bool":
        return (rng.random(shape) < 0.5).astype(np.bool_)
    if of.dtype.is_int:
        # Small numbers: valid as indices into nearly every table, and as masks.
        return rng.integers(0, 2, shape).astype(of.dtype.numpy)
    return rng.standard_normal(shape).astype(of.dtype.numpy)


def shape_text(shape: tuple[Dim, ...]) -> str:
    """A shape for people: ``[batch, 3, 224, 224]``."""
    return f"[{', '.join(dim_text(d) for d in shape)}]"
