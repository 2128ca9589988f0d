"""Programs as JSON, as an artifact stores them. Reading refuses unknown versions and records."""

from __future__ import annotations

import dataclasses
import json
from typing import TypeAlias

from unity.errors import UnityError
from unity.runtime import program as p
from unity.runtime.sizes import SizeOp, Slot

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
_RECORDS: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        Slot, SizeOp,
        p.TensorSpec, p.ShapeSpec, p.ScalarSpec, p.TupleSpec, p.ObjectSpec,
        p.CallKernel, p.CallHost, p.CallFunction, p.MakeClosure, p.CallClosure, p.RunScan,
        p.AllocTensor, p.AllocArena, p.View, p.Reshape, p.Element, p.Fill, p.SetSlot,
        p.LoadConst, p.Move, p.Copy, p.Update,
        p.MakeShape, p.MakeScalar, p.Match, p.Jump, p.Branch, p.Return,
        p.SymbolInfo, p.ParamInfo, p.FunctionCode, p.KernelInfo, p.ConstantInfo, p.Program,
    )
}  # fmt: skip


def to_json(program: p.Program) -> str:
    """The program as JSON text."""
    return json.dumps(_encode(program))


def from_json(text: str) -> p.Program:
    """The program that `to_json` wrote.

    Raises:
        UnityError: The text is no program, or of another version.
    """
    try:
        result = _decode(json.loads(text))
    except (ValueError, TypeError, KeyError) as e:
        raise UnityError(f"not a Unity program: {e}") from e
    if not isinstance(result, p.Program):
        raise UnityError("not a Unity program")
    if result.version != p.Program(()).version:
        raise UnityError(f"a program of version {result.version}; this Unity reads version 1")
    return result


def _encode(value: object) -> Json:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return [_encode(v) for v in value]
        case _:
            name = type(value).__name__
            assert _RECORDS[name] is type(value)
            assert dataclasses.is_dataclass(value)
            fields = {f.name: _encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
            return {"is": name, **fields}


def _decode(value: Json) -> object:
    match value:
        case list():
            return tuple(_decode(v) for v in value)
        case dict():
            fields = {k: _decode(v) for k, v in value.items() if k != "is"}
            record: object = _RECORDS[str(value["is"])](**fields)
            return record
        case _:
            return value
