"""Programs as JSON, as an artifact stores them. Reading refuses unknown versions and records."""

from __future__ import annotations

import json

from unity.errors import UnityError
from unity.runtime import program as p
from unity.runtime.records import classes_of, decode, encode
from unity.runtime.sizes import SizeOp, Slot

_CLASSES = classes_of(
    (
        Slot, SizeOp,
        p.TensorSpec, p.ShapeSpec, p.ScalarSpec, p.TupleSpec, p.ObjectSpec,
        p.CallKernel, p.CallHost, p.CallFunction, p.MakeClosure, p.CallClosure, p.RunScan,
        p.AllocTensor, p.AllocArena, p.View, p.Reshape, p.Element, p.Fill, p.SetSlot,
        p.LoadConst, p.Move, p.Copy, p.Update,
        p.MakeShape, p.MakeScalar, p.Match, p.Jump, p.Branch, p.Return,
        p.SymbolInfo, p.ParamInfo, p.FunctionCode, p.KernelInfo, p.ConstantInfo, p.Program,
    )
)  # fmt: skip


def to_json(program: p.Program) -> str:
    """The program as JSON text."""
    return json.dumps(encode(program, _CLASSES))


def from_json(text: str) -> p.Program:
    """The program that `to_json` wrote.

    Raises:
        UnityError: The text is no program, or of another version.
    """
    try:
        result = decode(json.loads(text), _CLASSES)
    except (ValueError, TypeError, KeyError, RecursionError) as e:
        raise UnityError(f"not a Unity program: {e}") from e
    if not isinstance(result, p.Program):
        raise UnityError("not a Unity program")
    if result.version != p.Program(()).version:
        raise UnityError(f"a program of version {result.version}; this Unity reads version 1")
    return result
