"""Inputs for a model: from files the user names, or generated from a seed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TypeAlias

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import Array, dtype
from unity.runtime.bytecode import Spec, SymbolInfo, TensorSpec, TupleSpec
from unity.runtime.bytecode.sizes import Size, Slot, evaluate, slots_of
from unity.runtime.executable import Executable

Feed: TypeAlias = "Array | tuple[Feed, ...]"
"""An input: an array, or of a tuple what it holds."""
DEFAULT_SIZE = 4
IMAGE_SIZE = 64
"""Of images: networks halve them up to five times."""
WIDEST = 8
"""Bytes of a number as it is generated."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a function takes.

    Attributes:
        names: The parameters.
        specs: What each must be, over the symbols.
        symbols: The symbols; a slot is an index.
        own: What the imported model calls its inputs; the names where there is none.
    """

    names: tuple[str, ...]
    specs: tuple[Spec, ...]
    symbols: Sequence[SymbolInfo]
    own: tuple[str, ...]


def inputs_of(executable: Executable) -> Inputs:
    """What the main function of an executable takes."""
    functions = executable.functions
    if not functions:
        raise UnityError("the executable has no functions")
    code = executable.program.function("main" if "main" in functions else functions[0])
    names = tuple(q.name for q in code.params)
    specs = tuple(q.spec for q in code.params)
    return Inputs(names, specs, code.symbols, code.input_names or names)


def feeds_for(inputs: Inputs, files: list[str], dims: list[str], seed: int) -> dict[str, Feed]:
    """An array for every parameter, those without a file generated.

    Files name inputs as the model does or as the parameters are called.

    Raises:
        UnityError: A file, a name or a size does not fit.
    """
    read = _read(files)
    own = dict(zip(inputs.own, inputs.names, strict=True))
    unknown = sorted(set(read) - set(inputs.names) - set(own))
    if unknown:
        raise UnityError(
            f"the model has no input {', '.join(unknown)}", hint=f"its inputs: {', '.join(own)}"
        )
    given = {own.get(name, name): array for name, array in read.items()}
    sizes = _sizes(inputs, dims, given)
    rng = np.random.default_rng(seed)
    return {
        name: given[name] if name in given else _generate(name, spec, sizes, rng)
        for name, spec in zip(inputs.names, inputs.specs, strict=True)
    }


def flat(values: Mapping[str, object]) -> dict[str, Array]:
    """Arrays by name; what tuples hold by its place in them, ``output0[1]``."""
    found: dict[str, Array] = {}
    stack = [*values.items()][::-1]
    while stack:
        name, value = stack.pop()
        if isinstance(value, tuple):
            stack += reversed([(f"{name}[{i}]", v) for i, v in enumerate(value)])
        else:
            found[name] = np.asarray(value)
    return found


def named_as_in_the_model(inputs: Inputs, feeds: Mapping[str, Feed]) -> dict[str, Feed]:
    """The same arrays under the names that the imported model gives its inputs."""
    return dict(zip(inputs.own, feeds.values(), strict=True))


def _read(files: list[str]) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for text in files:
        name, separator, path = text.rpartition("=")
        try:
            loaded = np.load(Path(path), allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            if "pickled" in str(error):  # what numpy takes anything else for
                raise UnityError(f"{path} is neither an .npy nor an .npz file") from None
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


def _sizes(inputs: Inputs, dims: list[str], given: Mapping[str, Array]) -> list[int]:
    """A value for each symbol."""
    asked = sizes_of(dims)
    sizes: dict[int, int] = {}
    for name, spec in zip(inputs.names, inputs.specs, strict=True):
        for axis, size in _axes(spec):
            for slot in slots_of(size):
                symbol = inputs.symbols[slot]
                usual = IMAGE_SIZE if axis > 0 and is_image(spec) else DEFAULT_SIZE
                default = max(usual, symbol.min)
                default = -(-default // symbol.multiple_of) * symbol.multiple_of
                if size == Slot(slot) and name in given and given[name].ndim > axis:
                    default = given[name].shape[axis]
                sizes[slot] = asked.get(symbol.name, sizes.get(slot, default))
    names = {inputs.symbols[slot].name for slot in sizes}
    unknown = sorted(set(asked) - names)
    if unknown:
        known = ", ".join(sorted(names)) or "none"
        raise UnityError(f"no symbol {', '.join(unknown)}", hint=f"the model's symbols: {known}")
    return [sizes.get(slot, 0) for slot in range(len(inputs.symbols))]


def chosen_sizes(inputs: Inputs, feeds: Mapping[str, Feed], dims: list[str]) -> dict[str, int]:
    """The sizes of generated inputs, by symbol, but for those that ``--dim`` options give."""
    found: dict[str, int] = {}
    for name, spec in zip(inputs.names, inputs.specs, strict=True):
        feed = feeds[name]
        pairs = zip(_axes(spec), feed.shape, strict=True) if isinstance(feed, np.ndarray) else ()
        for (_, size), extent in pairs:
            if isinstance(size, Slot):
                found[inputs.symbols[size.index].name] = extent
    return {name: n for name, n in found.items() if name not in sizes_of(dims)}


def sizes_hint(message: str, chosen: Mapping[str, int]) -> str | None:
    """What to do where generated inputs were refused, if their sizes may be why.

    >>> sizes_hint("x1 and v0 must be equal", {"x1": 64, "v0": 4, "x2": 64})
    'the inputs were generated with x1=64 and v0=4; give sizes that fit: --dim x1=4 --dim v0=4'
    """
    named = {s: n for s, n in chosen.items() if re.search(rf"\b{re.escape(s)}\b", message)}
    sizes = named or chosen
    if not sizes:
        return None
    told = " and ".join(f"{name}={n}" for name, n in sizes.items())
    options = " ".join(f"--dim {name}={min(sizes.values())}" for name in sizes)
    if len(set(sizes.values())) == 1:
        options = " ".join(f"--dim {name}=..." for name in sizes)
    return f"the inputs were generated with {told}; give sizes that fit: {options}"


def is_image(of: Spec) -> bool:
    """Whether an input may be images: floats of four axes."""
    match of:
        case TensorSpec(str(kind), tuple(shape)):
            return len(shape) == 4 and dtype(kind).is_float
        case _:
            return False


def _axes(of: Spec) -> list[tuple[int, Size]]:
    """The sizes of a tensor, by axis; those of a tuple's tensors, one tensor behind another."""
    match of:
        case TensorSpec():
            return list(enumerate(of.shape or ()))
        case TupleSpec(fields):
            return [pair for part in fields for pair in _axes(part)]
        case _:
            return []


def _memory() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _generate(name: str, of: Spec, sizes: Sequence[int], rng: np.random.Generator) -> Feed:
    if isinstance(of, TupleSpec):
        return tuple(_generate(f"{name}[{i}]", f, sizes, rng) for i, f in enumerate(of.fields))
    if not isinstance(of, TensorSpec) or of.shape is None or of.dtype is None:
        raise UnityError(f"the input {name} is no tensor of known shape", hint="give it a file")
    shape = tuple(evaluate(size, sizes) for size in of.shape)
    found = dtype(of.dtype)
    needed = prod(shape) * WIDEST
    if needed > _memory():
        raise UnityError(
            f"the input {name} of shape {list(shape)} takes {needed} bytes to generate",
            hint="give smaller sizes by --dim, or the input as a file",
        )
    if found.kind == "bool":
        return (rng.random(shape) < 0.5).astype(np.bool_)
    if found.is_int:
        # Small numbers: valid as indices into nearly every table, and as masks.
        return rng.integers(0, 2, shape).astype(found.numpy)
    return rng.standard_normal(shape).astype(found.numpy)
