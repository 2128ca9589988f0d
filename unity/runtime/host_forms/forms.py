"""What a caller gives and gets in place of tensors: strings, maps, trees, sequences.

A program knows numbers alone. Strings are codes in it: those of the model's vocabulary have the
places that they have there, others get codes behind them, call by call. A map for each row is a
tensor with a column for each key. Lists and trees are the tensors in them (`trees.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, get_args

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError
from unity.runtime.records import Index

from .sequences import HeldInput, HeldOutput, Layout
from .steps import STEPS, Given, Made, Operand, Step, Words, run_steps
from .trees import Tree

if TYPE_CHECKING:
    from unity.runtime.call import PythonCall


@dataclass(frozen=True, slots=True)
class Maps:
    """A tensor with a column for each key: strings or numbers, the others are empty."""

    index: Index
    texts: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()

    @property
    def keys(self) -> tuple[str, ...] | tuple[int, ...]:
        """The keys."""
        return self.texts or self.numbers


@dataclass(frozen=True, slots=True)
class HostForms:
    """What the inputs and outputs of a function are for its caller.

    Attributes:
        vocabulary: The strings of the codes 0, 1, 2 ...
        string_inputs: Which inputs are strings.
        string_outputs: Which outputs are.
        map_inputs: Inputs that are a map.
        map_outputs: Outputs that are a list of maps, one for each row.
        tree_inputs: Inputs of types that the model declares.
        held_inputs: Inputs that are sequences or may be absent.
        held_outputs: Outputs that are.
        steps: What is worked out before the program runs.
        derived: What it takes of that behind its inputs: steps and their outputs.
    """

    vocabulary: tuple[str, ...] = ()
    string_inputs: tuple[Index, ...] = ()
    string_outputs: tuple[Index, ...] = ()
    map_inputs: tuple[Maps, ...] = ()
    map_outputs: tuple[Maps, ...] = ()
    tree_inputs: tuple[Tree, ...] = ()
    held_inputs: tuple[HeldInput, ...] = ()
    held_outputs: tuple[HeldOutput, ...] = ()
    steps: tuple[Step, ...] = ()
    derived: tuple[Made, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any."""
        strings = self.string_inputs or self.string_outputs
        of_arrays = self.held_inputs or self.held_outputs or self.tree_inputs
        others = self.map_inputs or self.map_outputs or of_arrays or self.derived
        return bool(strings or others)

    def given(self, args: Sequence[object], names: Sequence[str]) -> tuple[list[object], list[str]]:
        """Arguments as the program takes them, and the vocabulary with this call's own strings.

        Raises:
            UnityError: One is not strings, no map, no list of arrays, or no tree of the form that
                is known.
        """
        found, words = list(args), list(self.vocabulary)
        if self.derived:
            made = run_steps(self.steps, args)
            found += [made[of.step][of.output] for of in self.derived]
        codes = {word: code for code, word in enumerate(words)} if self.string_inputs else {}
        for index in self.string_inputs:
            found[index] = _coded(found[index], codes, words, f"input {names[index]!r}")
        for maps in self.map_inputs:
            found[maps.index] = _row(found[maps.index], maps, f"input {names[maps.index]!r}")
        for tree in self.tree_inputs:
            found[tree.index] = tree.tensors(found[tree.index], f"input {names[tree.index]!r}")
        for held in self.held_inputs:
            found[held.index] = held.given(found[held.index], f"input {names[held.index]!r}")
        return found, words

    def taken(self, results: Sequence[object], words: Sequence[str]) -> list[object]:
        """Results as the caller takes them; `words` is the vocabulary that `given` gave."""
        found = list(results)
        for index in self.string_outputs:
            codes = np.asarray(found[index])
            found[index] = np.asarray(np.array(words, object)[codes], object)
        for maps in self.map_outputs:
            rows = np.asarray(found[maps.index]).tolist()
            found[maps.index] = [dict(zip(maps.keys, row, strict=True)) for row in rows]
        for held in self.held_outputs:
            found[held.index] = held.taken(found[held.index])
        return found


NO_FORMS = HostForms()
"""Tensors of numbers alone."""


def _coded(
    value: object, codes: dict[str, int], words: list[str], where: str
) -> npt.NDArray[np.int64]:
    array = np.asarray(value)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    flat = array.reshape(-1).tolist()
    if array.dtype.kind not in "UOT" or not all(isinstance(v, str) for v in flat):
        raise UnityError(
            f"{where} must be strings, got {array.dtype} of shape {array.shape}",
            hint='give numpy.array(["a", "b"]), or an array of objects that are str',
        )
    found = np.empty(len(flat), np.int64)
    for k, word in enumerate(flat):
        code = codes.get(word)
        if code is None:
            code = codes[word] = len(words)
            words.append(word)
        found[k] = code
    return found.reshape(array.shape)


def _row(value: object, maps: Maps, where: str) -> npt.NDArray[np.float32]:
    if not isinstance(value, Mapping):
        raise UnityError(
            f"{where} must be a dict with keys as {maps.keys[:3]}, got {type(value).__name__}"
        )
    return np.asarray([[value.get(key, 0) for key in maps.keys]], np.float32)


@dataclass(frozen=True, slots=True)
class HostCall:
    """A function as a caller sees it, who gives and takes host forms.

    Attributes:
        forms: Of its inputs and outputs.
        slow: Knows its parameters.
        plain: The function, which gives and takes tensors.
        several: Whether a tuple that it gives is several results, not one that is a sequence.
    """

    forms: HostForms
    slow: PythonCall
    plain: Callable[..., object] = field(repr=False)
    several: bool = True

    def __call__(self, *args: object, **named: object) -> object:
        """Call it.

        Raises:
            UnityError: An argument doesn't fit; the message names it.
        """
        names = [q.name for q in self.slow.code.params]
        own = len(names) - len(self.forms.derived)
        given, words = self.forms.given(self.slow.ordered(args, named, own), names)
        result = self.plain(*given)
        if self.several and isinstance(result, tuple):
            return tuple(self.forms.taken(result, words))
        return self.forms.taken([result], words)[0]


def forms_of(attrs: Mapping[str, object]) -> HostForms:
    """The forms that a graph function's attributes tell of.

    They are ``vocabulary``, ``string_inputs``, ``string_outputs``, ``map_inputs`` and
    ``map_outputs``, each of whose elements is an index and the keys, ``tree_inputs``, an index and
    the nodes, and ``held_inputs`` and ``held_outputs``, whose elements are the fields of
    `HeldInput` and `HeldOutput`, and ``steps`` and ``derived``, those of `Step` and `Made`.
    """
    return HostForms(
        tuple(str(word) for word in _tuple(attrs.get("vocabulary"))),
        tuple(int(str(k)) for k in _tuple(attrs.get("string_inputs"))),
        tuple(int(str(k)) for k in _tuple(attrs.get("string_outputs"))),
        tuple(_maps(of) for of in _tuple(attrs.get("map_inputs"))),
        tuple(_maps(of) for of in _tuple(attrs.get("map_outputs"))),
        tuple(_tree(of) for of in _tuple(attrs.get("tree_inputs"))),
        tuple(_held_input(*_tuple(of)) for of in _tuple(attrs.get("held_inputs"))),
        tuple(_held_output(*_tuple(of)) for of in _tuple(attrs.get("held_outputs"))),
        tuple(_step(*_tuple(of)) for of in _tuple(attrs.get("steps"))),
        tuple(Made(*_ints(of)) for of in _tuple(attrs.get("derived"))),
    )


def _step(name: object, operands: object, texts: object, numbers: object) -> Step:
    given = tuple(_operand(*_tuple(of)) for of in _tuple(operands))
    return Step(STEPS[str(name)], given, tuple(map(str, _tuple(texts))), _ints(numbers))


def _operand(kind: object, *of: object) -> Operand:
    match kind:
        case "given":
            return Given(*_ints(of))
        case "made":
            return Made(*_ints(of))
        case _:
            shape, words = of
            return Words(_ints(shape), tuple(map(str, _tuple(words))))


def _ints(value: object) -> tuple[int, ...]:
    return tuple(int(str(n)) for n in _tuple(value))


def _held_input(index: object, layout: object, dtype: object, width: object) -> HeldInput:
    return HeldInput(int(str(index)), _LAYOUTS[str(layout)], str(dtype), int(str(width)))


def _held_output(index: object, layout: object) -> HeldOutput:
    return HeldOutput(int(str(index)), _LAYOUTS[str(layout)])


_LAYOUTS: dict[str, Layout] = {name: name for name in get_args(Layout)}


def _tuple(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else ()


def _maps(value: object) -> Maps:
    index, *keys = _tuple(value)
    texts = tuple(key for key in keys if isinstance(key, str))
    return Maps(int(str(index)), texts, tuple(key for key in keys if isinstance(key, int)))


def _tree(value: object) -> Tree:
    index, *nodes = _tuple(value)
    return Tree(int(str(index)), tuple(str(node) for node in nodes))
