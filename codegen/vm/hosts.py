"""Operators without a kernel: their numpy reference, run on the host."""

from __future__ import annotations

import json
from dataclasses import dataclass

from unity.errors import UnityError
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dtype import DType, dtype
from unity.op.registry import RefArg
from unity.op.table import OPS
from unity.runtime.hosts import HostRecord


@dataclass(frozen=True, slots=True)
class OpHost:
    """An operator's reference with its attributes, none of which names a symbol.

    >>> import numpy as np
    >>> op_host(OpHost("sum", Attrs(axis=(0,), out_dtype=dtype("f64"))).record().argument)
    OpHost(op='sum', attrs=Attrs(axis=(0,), out_dtype=DType(name='float64', lanes=1)))
    """

    op: str
    attrs: Attrs

    def __call__(self, *args: RefArg) -> object:
        """Compute it."""
        rule = OPS[self.op].reference
        assert rule is not None
        return rule(args, self.attrs)

    def record(self) -> HostRecord:
        """What makes it again."""
        attrs = {name: _plain(value) for name, value in self.attrs.items()}
        return HostRecord(__name__, op_host.__name__, json.dumps({"op": self.op, "attrs": attrs}))


def op_host(text: str) -> OpHost:
    """What `OpHost.record` wrote.

    Raises:
        UnityError: The operator is not known, or the text is none of an operator.
    """
    try:
        match json.loads(text):
            case {"op": str(name), "attrs": dict(attrs)}:
                found = OpHost(name, Attrs({str(k): _value(v) for k, v in attrs.items()}))
            case _:
                raise UnityError(f"{text[:40]!r} is no record of an operator")
    except (ValueError, RecursionError) as error:
        raise UnityError(f"{text[:40]!r} is no record of an operator") from error
    row = OPS.get(name)
    if row is None or row.reference is None:
        raise UnityError(f"the program needs the operator {name!r}, which is not known here")
    return found


def _plain(value: AttrValue) -> object:
    match value:
        case DType():
            return {"dtype": str(value)}
        case tuple():
            return [_plain(v) for v in value]
        case _:
            return value


def _value(plain: object) -> AttrValue:
    match plain:
        case {"dtype": str(name)}:
            return dtype(name)
        case list():
            return tuple(_value(v) for v in plain)
        case None | bool() | int() | float() | str():
            return plain
        case _:
            raise UnityError(f"no attribute: {plain!r}")
