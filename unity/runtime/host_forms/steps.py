"""What is worked out of strings and files before a program runs, which knows numbers alone.

A model may look into the strings that it is given (split them, match them), or take an image as it
lies in a file. That depends on nothing that the program computes, so it is done before, step by
step, and what comes out is passed to the program behind its inputs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from unity.errors import UnityError, UnsupportedError
from unity.ir.dtype import DType
from unity.runtime.records import Index

Texts: TypeAlias = npt.NDArray[np.object_]
Anything: TypeAlias = npt.NDArray[Any]
StepName: TypeAlias = Literal["concat", "split", "match", "normalize", "parse", "image"]
STEPS: dict[str, StepName] = {name: name for name in get_args(StepName)}


@dataclass(frozen=True, slots=True)
class Words:
    """Strings of the model itself."""

    shape: tuple[Index, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """One of the caller's inputs."""

    index: Index


@dataclass(frozen=True, slots=True)
class Made:
    """An output of an earlier step."""

    step: Index
    output: Index


Operand: TypeAlias = Words | Given | Made


@dataclass(frozen=True, slots=True)
class Step:
    """A step.

    Attributes:
        name: What is done.
        operands: With what.
        texts: What it is told in words: a delimiter, a pattern, a dtype.
        numbers: And in numbers.
    """

    name: StepName
    operands: tuple[Operand, ...]
    texts: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()

    def done(self, operands: Sequence[Anything]) -> tuple[Anything, ...]:
        """Its outputs."""
        match self.name:
            case "concat":
                a, b = operands
                return (np.asarray(a.astype(object) + b.astype(object), object),)
            case "split":
                return _split(operands[0], self.texts[0], self.numbers[0])
            case "match":
                return (_matched(operands[0], self.texts[0]),)
            case "normalize":
                return (_normalized(operands[0], self.texts, bool(self.numbers[0])),)
            case "parse":
                return (_parsed(operands[0], DType(self.texts[0])),)
            case "image":
                return (_image(operands[0], self.texts[0]),)


def run_steps(steps: Sequence[Step], args: Sequence[object]) -> list[tuple[Anything, ...]]:
    """The outputs of all steps, in their order."""
    found: list[tuple[Anything, ...]] = []
    for step in steps:
        operands: list[Anything] = []
        for operand in step.operands:
            match operand:
                case Words(shape, words):
                    operands.append(np.array(words, object).reshape(shape))
                case Given(index):
                    operands.append(np.asarray(args[index]))
                case Made(of, output):
                    operands.append(found[of][output])
        found.append(step.done(operands))
    return found


def _each(texts: Anything) -> list[str]:
    return [str(t) for t in texts.reshape(-1).tolist()]


def _split(texts: Anything, delimiter: str, most: int) -> tuple[Texts, Anything]:
    """Parts of each string, empty ones behind where others have more; and how many there are."""
    parts = [t.split(delimiter or None, most) for t in _each(texts)]
    width = max(map(len, parts), default=0)
    flat = [p + [""] * (width - len(p)) for p in parts]
    table = np.empty((len(flat), width), object)
    for row, one in enumerate(flat):
        table[row, :] = one
    counts = np.asarray([len(p) for p in parts], np.int64)
    return table.reshape(*texts.shape, width), counts.reshape(texts.shape)


def _matched(texts: Anything, pattern: str) -> Anything:
    rule = re.compile(pattern, re.ASCII)
    found = [rule.fullmatch(t) is not None for t in _each(texts)]
    return np.asarray(found, np.bool_).reshape(texts.shape)


def _normalized(texts: Anything, told: Sequence[str], sensitive: bool) -> Texts:
    """Without stop words, in another case: one empty string if nothing is left.

    Args:
        texts: A vector, or a matrix of one row.
        told: The case (LOWER, UPPER, NONE), then the stop words.
        sensitive: Whether those are told apart by case.
    """
    case, *words = told
    stop = set(words) if sensitive else {w.lower() for w in words}
    left = [t for t in _each(texts) if (t if sensitive else t.lower()) not in stop]
    change = {"LOWER": str.lower, "UPPER": str.upper}.get(case, str)
    found = np.array([change(t) for t in left] or [""], object)
    return found if texts.ndim == 1 else found.reshape(1, -1)


def _parsed(texts: Anything, to: DType) -> Anything:
    """Numbers that strings write out."""
    try:
        numbers = [float(t) if to.is_float else _whole(t) for t in _each(texts)]
        found = np.array(numbers, float if to.is_float else object)
        return found.astype(to.numpy).reshape(texts.shape)
    except (ValueError, OverflowError) as error:
        raise UnityError(f"a string is no number of {to}: {error}") from None


def _whole(text: str) -> int:
    """The integer that a string writes out, perhaps as a real, which is cut."""
    try:
        return int(text)
    except ValueError:
        return int(float(text))


def _image(data: Anything, pixels: str) -> Anything:
    """An image as it lies in a file: height, width, channels.

    Raises:
        UnsupportedError: The package that reads images is not there.
        UnityError: It can't read this one.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise UnsupportedError(
            "ImageDecoder needs the package pillow",
            ["images without pillow"],
            hint="pip install unity-mlc[images]",
        ) from None
    try:
        with Image.open(BytesIO(data.tobytes())) as image:
            found = np.asarray(image.convert("L" if pixels == "Grayscale" else "RGB"))
    except (UnidentifiedImageError, OSError) as error:
        raise UnityError(f"the image can't be read: {error}") from None
    if pixels == "Grayscale":
        return found[:, :, None].copy()
    return found[:, :, ::-1].copy() if pixels == "BGR" else found.copy()
