"""Structural equality: equal up to names of variables and buffers, spans, and order of definition.

One walk over the dataclass fields serves every node family. Nodes that are equal by identity
(variables, buffers) are matched up where they are first met, and anew where one is bound anew (two
loops may share a variable). Symbols are values: their names and facts must agree. How bindings
outside dataflow blocks are grouped does not count: it has no meaning and no text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from itertools import count

import numpy as np
import numpy.typing as npt

from unity.arguments import public
from unity.ir.attrs import Attrs
from unity.ir.dims import Symbol, SymDim, equal, symbols_of
from unity.ir.dtype import Array, DType
from unity.ir.graph import BindingBlock, Body, Constant, Var
from unity.ir.module import IRModule
from unity.ir.prim_expr import Imm, PrimVar
from unity.ir.stmt import Allocate, BlockAxis, Buffer, For, Let

_SKIPPED = frozenset({"span"})
_NAMELESS = (Var, PrimVar, Buffer, Constant)
_PIECE = 1 << 20


@public
def structural_equal(a: object, b: object) -> bool:
    """Whether two modules, functions, expressions, statements or types are the same program."""
    return first_difference(a, b) is None


def first_difference(a: object, b: object) -> str | None:
    """Where two programs first differ, as a path and what stands there; None if nowhere.

    >>> from unity.ir.prim_expr import imm
    >>> first_difference(imm(1) + 2, imm(1) + 3)
    '.b.value: 2 is not 3'
    """
    return _Matcher().compare(a, b, "")


class _Matcher:
    """Carries which variable of one side stands for which of the other."""

    def __init__(self) -> None:
        self.left: dict[object, object] = {}
        self.right: dict[object, object] = {}

    def compare(self, a: object, b: object, path: str) -> str | None:
        if isinstance(a, IRModule) and isinstance(b, IRModule):
            return self._modules(a, b, path)
        if isinstance(a, SymDim) or isinstance(b, SymDim):
            return self._dims(a, b, path)
        if type(a) is not type(b):
            return f"{path}: {_brief(a)} is not {_brief(b)}"
        if isinstance(a, tuple) and isinstance(b, tuple):
            return self._sequences(a, b, path)
        if isinstance(a, Attrs) and isinstance(b, Attrs):
            return self._mappings(a, b, path)
        if isinstance(a, Constant) and isinstance(b, Constant):
            return None if _same_array(a.data, b.data) else f"{path}: the constants differ"
        if isinstance(a, DType) or not is_dataclass(a):
            return None if _same_leaf(a, b) else f"{path}: {_brief(a)} is not {_brief(b)}"
        if isinstance(a, Body) and isinstance(b, Body):
            a, b = _regrouped(a), _regrouped(b)
        self._unbind(bound_by(a), bound_by(b))
        if isinstance(a, _NAMELESS):
            if a in self.left or b in self.right:
                same = self.left.get(a) is b and self.right.get(b) is a
                return None if same else f"{path}: {_brief(a)} does not stand for {_brief(b)}"
            self.left[a], self.right[b] = b, a
        if isinstance(a, Imm) and isinstance(b, Imm) and a.dtype == b.dtype:
            return (
                None
                if _same_leaf(a.value, b.value)
                else f"{path}.value: {a.value} is not {b.value}"
            )
        for name in field_names(a):
            found = self.compare(getattr(a, name), getattr(b, name), f"{path}.{name}")
            if found is not None:
                return found
        return None

    def _unbind(self, a: object, b: object) -> None:
        """Forget what the variables of one binder stood for in an earlier scope."""
        if a is not None:
            self.right.pop(self.left.pop(a, None), None)
            self.left.pop(self.right.pop(b, None), None)

    def _dims(self, a: object, b: object, path: str) -> str | None:
        # Symbols are values, known to the user by name: no renaming.
        if isinstance(a, SymDim) and isinstance(b, SymDim) and equal(a, b):
            return None
        return f"{path}: {a} is not {b}"

    def _sequences(self, a: tuple[object, ...], b: tuple[object, ...], path: str) -> str | None:
        for i, (x, y) in enumerate(zip(a, b, strict=False)):
            found = self.compare(x, y, f"{path}[{i}]")
            if found is not None:
                return found
        if len(a) != len(b):
            return f"{path}: {len(a)} items, not {len(b)}"
        return None

    def _mappings(self, a: Mapping[str, object], b: Mapping[str, object], path: str) -> str | None:
        if set(a) != set(b):
            return f"{path}: {sorted(a)} is not {sorted(b)}"
        for key in a:
            found = self.compare(a[key], b[key], f"{path}.{key}")
            if found is not None:
                return found
        return None

    def _modules(self, a: IRModule, b: IRModule, path: str) -> str | None:
        if set(a) != set(b):
            return f"{path}: functions {sorted(a)} are not {sorted(b)}"
        for name in a:
            found = _Matcher().compare(a[name], b[name], f"{path}{name}")
            if found is not None:
                return found
        return self._mappings(a.attrs, b.attrs, f"{path}.attrs")


def structural_hash(of: object) -> int:
    """Equal for structurally equal programs."""
    return hash(tuple(_tokens(of, {}, count())))


def _tokens(of: object, seen: dict[object, int], fresh: Iterator[int]) -> Iterator[object]:
    match of:
        case IRModule():
            for name in sorted(of):
                yield name
                yield from _tokens(of[name], {}, count())
        case Symbol() | SymDim():
            yield tuple(sorted(s.name for s in symbols_of(of)))
        case Attrs():
            for key, value in of.items():
                yield key
                yield from _tokens(value, seen, fresh)
        case tuple():
            yield len(of)
            for item in of:
                yield from _tokens(item, seen, fresh)
        case Constant():
            yield (of.data.dtype.str, of.data.shape, blake2b(_bytes(of.data).data).digest())
        case DType():
            yield of
        case _ if is_dataclass(of) and not isinstance(of, type):
            yield type(of).__name__
            if isinstance(of, Body):
                of = _regrouped(of)
            seen.pop(bound_by(of), None)
            if isinstance(of, _NAMELESS):
                if of in seen:
                    yield seen[of]
                    return
                seen[of] = next(fresh)
            for name in field_names(of):
                yield from _tokens(getattr(of, name), seen, fresh)
        case _:
            yield type(of).__name__
            yield repr(of)


def bound_by(node: object) -> PrimVar | Buffer | None:
    """The variable or buffer whose scope a node opens."""
    match node:
        case For() | Let() | BlockAxis():
            return node.var
        case Allocate():
            return node.buffer
        case _:
            return None


def _regrouped(body: Body) -> Body:
    """With neighbouring plain blocks joined and empty blocks left out."""
    blocks: list[BindingBlock] = []
    for block in body.blocks:
        if not block.bindings:
            continue
        if blocks and not block.dataflow and not blocks[-1].dataflow:
            blocks[-1] = BindingBlock((*blocks[-1].bindings, *block.bindings))
        else:
            blocks.append(block)
    return Body(tuple(blocks), body.result)


_FIELDS: dict[type, tuple[str, ...]] = {}


def field_names(node: object) -> tuple[str, ...]:
    """The fields of a node that count in comparisons."""
    kind = type(node)
    names = _FIELDS.get(kind)
    if names is None:
        assert is_dataclass(kind)
        skipped = _SKIPPED | ({"name"} if issubclass(kind, _NAMELESS) else set())
        names = tuple(f.name for f in fields(kind) if f.name not in skipped)
        _FIELDS[kind] = names
    return names


def _same_leaf(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b and math.copysign(1.0, a) == math.copysign(1.0, b)
    return bool(a == b)


def _same_array(a: Array, b: Array) -> bool:
    """Whether they hold the same bytes, looked at piece by piece: constants are large."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    left, right = _bytes(a), _bytes(b)
    pieces = range(0, left.size, _PIECE)
    return all(np.array_equal(left[i : i + _PIECE], right[i : i + _PIECE]) for i in pieces)


def _bytes(a: Array) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(a).reshape(-1).view(np.uint8)


def _brief(value: object) -> str:
    name = getattr(value, "name", None)
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}({name})" if isinstance(name, str) else type(value).__name__
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."
