"""Fingerprints of kernels: equal for equal programs, on every machine and in every process.

What `unity.ir.equality` says of two prim funcs, as one digest of each: names of variables and
buffers and where things stand in the source do not count, symbols do with name and facts. The
cache of compiled kernels is keyed by it.
"""

from __future__ import annotations

import hashlib

from unity.ir.attrs import Attrs
from unity.ir.dims import SymDim, symbols_of
from unity.ir.dtype import DType
from unity.ir.equality import bound_by, field_names
from unity.ir.prim_expr import Binary, Imm, Load, PrimVar
from unity.ir.stmt import Buffer, PrimFunc


def fingerprint(func: PrimFunc) -> str:
    """The digest of a prim func, 64 hexadecimal digits.

    Two prim funcs have the same one exactly if they are `structural_equal`; only dims that stand in
    attributes and are equal without being written in the same way count as different.

    >>> from unity.ir.prim_expr import PrimVar, imm
    >>> from unity.ir.stmt import Evaluate, For
    >>> def kernel(name: str, extent: int) -> PrimFunc:
    ...     i = PrimVar(name)
    ...     return PrimFunc((), For(i, imm(0), imm(extent), Evaluate(i * 2)))
    >>> fingerprint(kernel("i", 8)) == fingerprint(kernel("j", 8))
    True
    >>> fingerprint(kernel("i", 8)) == fingerprint(kernel("i", 9))
    False
    """
    writer = _Writer()
    writer.write(func)
    return hashlib.sha256("".join(writer.parts).encode()).hexdigest()


class _Writer:
    """Writes programs as text that differs where they do: each part tells its kind and its end.

    Carries the numbers of variables and buffers, in the order in which they are met.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._numbers: dict[PrimVar | Buffer, str] = {}
        self._count = 0
        self._dtypes: dict[DType, str] = {}

    def write(self, of: object) -> None:
        kind = type(of)
        put = self.parts.append
        if kind is Binary:
            assert isinstance(of, Binary)  # the most frequent ones first: speed counts here
            put(f"({of.op} ")
            self.write(of.a)
            self.write(of.b)
        elif kind is PrimVar or kind is Buffer:
            assert isinstance(of, PrimVar | Buffer)
            number = self._numbers.get(of)
            if number is not None:
                put(number)
                return
            self._count += 1
            self._numbers[of] = f"#{self._count} "
            self._fields(of)
        elif kind is Imm:
            assert isinstance(of, Imm)
            put(f"{self._literal(of)}:{self._dtype(of.dtype)} ")
        elif kind is Load:
            assert isinstance(of, Load)
            put("[")
            self.write(of.buffer)
            self.write(of.indices)
            self.write(of.predicate)
        elif kind is tuple:
            assert isinstance(of, tuple)
            put(f"<{len(of)} ")
            for item in of:
                self.write(item)
        elif of is None:
            put("~")
        elif kind is DType:
            assert isinstance(of, DType)
            put(f"{self._dtype(of)} ")
        elif kind is Attrs:
            assert isinstance(of, Attrs)
            put(f"@{len(of)} ")
            for key, value in of.items():
                put(repr(key))
                self.write(value)
        elif kind in (str, int, bool):
            put(f"{kind.__name__} {of!r} ")
        elif kind is float:
            assert isinstance(of, float)
            put(f"float {_float(of)} ")
        elif isinstance(of, SymDim):
            facts = sorted((s.name, repr(s.facts)) for s in symbols_of(of))
            put(f"dim {str(of)!r} {facts!r} ")
        else:
            self._fields(of)

    def _fields(self, of: object) -> None:
        """A node by its kind and its fields; what it binds is another variable from here on."""
        bound = bound_by(of)
        if bound is not None:
            self._numbers.pop(bound, None)
        self.parts.append(type(of).__name__ + " ")
        for name in field_names(of):
            self.write(getattr(of, name))

    def _dtype(self, dtype: DType) -> str:
        text = self._dtypes.get(dtype)
        if text is None:
            text = self._dtypes[dtype] = f"{dtype.name}x{dtype.lanes}"
        return text

    def _literal(self, of: Imm) -> str:
        """A literal's value as the dtype reads it."""
        if of.dtype.is_float:
            return _float(float(of.value))
        return repr(int(of.value))


def _float(value: float) -> str:
    return "nan" if value != value else value.hex()
