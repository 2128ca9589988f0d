"""What executables are timed with: inputs made up from types, and the sizes of symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unity.errors import UnityError
from unity.ir.dims import Dim, Symbol, evaluate, symbols_of
from unity.ir.dtype import Array
from unity.ir.graph import Call, Function, Op
from unity.ir.lattice import atom_type
from unity.ir.symbols.representative import BATCH, FRAMES, IMAGE, LENGTH, of_symbol
from unity.ir.types import ShapeType, TensorType, TupleType, Type
from unity.ir.visit import type_symbols
from unity.ir.visiting.visit_graph import walk_bindings

_PLACES: Mapping[int, Sequence[int]] = {
    3: (BATCH, LENGTH, LENGTH),
    4: (BATCH, LENGTH, IMAGE, IMAGE),
    5: (BATCH, LENGTH, FRAMES, IMAGE, IMAGE),
}
"""What unknown sizes of a signal, an image and a clip are taken for, axis by axis."""
_WINDOWS = ("nn.conv", "nn.max_pool", "nn.avg_pool")


def sizes_for(function: Function, given: Mapping[str, int]) -> dict[Symbol, int]:
    """A value for every symbol of a function's parameters: what is given, or a guess.

    What a program's convolutions and pools read is taken for images, as where costs are estimated,
    and of texts there is one.
    """
    symbols = {s for p in function.params for s in type_symbols(p.type)}
    places = _places(function)
    return {s: given.get(s.name, of_symbol(s, places.get(s, LENGTH))) for s in symbols}


def _places(function: Function) -> dict[Symbol, int]:
    """What the place says of symbols: sizes of images, of the first that reads them, and batches.

    Integers of two unknown sizes are the tokens of some texts.
    """
    found: dict[Symbol, int] = {}
    for binding in walk_bindings(function):
        match binding.value:
            case Call(Op(name), (x, *_), attrs) if name.startswith(_WINDOWS):
                kind = atom_type(x)
            case _:
                continue
        if isinstance(kind, TensorType) and isinstance(kind.shape, tuple):
            first = str(attrs.get("data_layout", "NC")).startswith("NC")
            places = _PLACES.get(len(kind.shape), ()) if first else ()
            for size, place in zip(kind.shape, places, strict=False):
                found.update(dict.fromkeys(symbols_of(size) - found.keys(), place))
    for param in function.params:
        match param.type:
            case TensorType(shape=(Symbol() as batch, Symbol() as length), dtype=dtype) if (
                batch != length and dtype is not None and dtype.is_int
            ):
                found.setdefault(batch, BATCH)
            case _:
                pass
    return found


def check_sizes(function: Function, given: Mapping[str, int]) -> None:
    """Refuse values of symbols that a function has not.

    Raises:
        UnityError: It has no symbol of some name.
    """
    names = {s.name for s in sizes_for(function, {})}
    unknown = sorted(set(given) - names)
    if unknown:
        there = ", ".join(sorted(names)) or "(none)"
        raise UnityError(f"sizes: no symbol {', '.join(unknown)}", hint=f"the symbols are {there}")


def inputs_for(function: Function, sizes: Mapping[Symbol, int]) -> list[object]:
    """Arrays for a function's parameters: floats at random, integers zero, so that no index fails.

    Args:
        function: The function.
        sizes: A value for every symbol of its parameters.
    """
    rng = np.random.default_rng(0)
    return [_value(p.type, sizes, rng) for p in function.params]


def _value(t: Type, sizes: Mapping[Symbol, int], rng: np.random.Generator) -> object:
    if isinstance(t, TupleType):
        return tuple(_value(f, sizes, rng) for f in t.fields)
    if isinstance(t, ShapeType) and isinstance(t.dims, tuple):
        return tuple(_number(d, sizes) for d in t.dims)
    if not isinstance(t, TensorType):
        raise UnityError(
            f"measuring takes tensors of known rank and dtype, not {t}",
            hint='resolve="static", or overrides',
        )
    return array_of(t, sizes, rng)


def array_of(t: TensorType, sizes: Mapping[Symbol, int], rng: np.random.Generator) -> Array:
    """An array of a type: floats at random, integers zero.

    Args:
        t: The type.
        sizes: A value for every symbol of it.
        rng: Makes the numbers.

    Raises:
        UnityError: The rank or the dtype are not known.
    """
    if not isinstance(t.shape, tuple) or t.dtype is None:
        raise UnityError(
            f"measuring takes tensors of known rank and dtype, not {t}",
            hint='resolve="static", or overrides',
        )
    shape = [_number(d, sizes) for d in t.shape]
    made: Array = np.zeros(shape, t.dtype.numpy)
    if t.dtype.is_float:
        made = rng.standard_normal(shape).astype(t.dtype.numpy)
    return made


def _number(d: Dim, sizes: Mapping[Symbol, int]) -> int:
    if isinstance(d, int):
        return d
    return evaluate(d, {s: sizes[s] for s in symbols_of(d)})


def completed(function: Function, given: Mapping[str, int]) -> dict[str, int]:
    """Sizes by name with those that are not given, a guess each: `sizes_for`."""
    return {**{s.name: v for s, v in sizes_for(function, given).items()}, **given}


def assignments(sizes: Mapping[str, int | Sequence[int]]) -> list[dict[str, int]]:
    """The assignments of symbols to measure at: the i-th values together, one value for all.

    Raises:
        UnityError: What is given are no sizes, or symbols are given different numbers of them.

    >>> assignments({"n": (16, 128), "batch": 1})
    [{'n': 16, 'batch': 1}, {'n': 128, 'batch': 1}]
    """
    for name, given in sizes.items():
        values = (given,) if isinstance(given, int) else given
        if not _are_sizes(values):
            raise UnityError(
                f"sizes: {name!r} is {given!r}, not a size or a sequence of sizes",
                hint='sizes are integers from 0 on: {"n": 128}, or {"n": (16, 128)}',
            )
    several = {len(v) for v in sizes.values() if not isinstance(v, int)}
    if len(several) > 1:
        raise UnityError(f"sizes has symbols of {sorted(several)} values: give each as many")
    count = several.pop() if several else 1
    return [{k: v if isinstance(v, int) else v[i] for k, v in sizes.items()} for i in range(count)]


def _are_sizes(values: object) -> bool:
    """Whether something is a sequence of sizes, at least one."""
    if not isinstance(values, Sequence) or isinstance(values, str | bytes) or not values:
        return False
    return all(type(v) is int and v >= 0 for v in values)
