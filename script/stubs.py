"""What type checkers and editors read of operators and scalar functions: stubs made of their rows.

``python -m unity.script.stubs`` writes ``operators.pyi`` and ``scalars.pyi`` beside this file, of
which `graph_names` and `prim_names` take the names of ``R`` and ``T``. At run time they do nothing:
`operator_names` and `scalar_names` read the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import cleandoc
from pathlib import Path

from unity.arguments import REQUIRED
from unity.ir.dims import SymDim
from unity.ir.dtype import DType
from unity.ir.types import TupleType
from unity.op import effects
from unity.op.infer import infer_call
from unity.op.meanings import docstring_of
from unity.op.registry import OpDef, Param
from unity.op.sampling import type_of
from unity.op.table import OPS

from .scalar_names import SCALAR_SIGNATURES, scalar_text

WORDS = frozenset(row.name for row in effects.OPS)
"""Operators that programs call by other parameters: words of the language."""
FOLDER = Path(__file__).parent
_COLUMNS = 100
_MADE = "made by `python -m unity.script.stubs`"
_OPERATORS = f'''\
"""The operators of ``R``, {_MADE}."""

from collections.abc import Sequence
from typing import TypeAlias

from unity.ir.dims import SymDim
from unity.ir.dtype import DType

from .annotations import Operand, Tensor

Dim: TypeAlias = SymDim | int
'''
_SCALARS = f'''\
"""The scalar functions of ``T``, {_MADE}."""

from .annotations import Number, Scalar
'''
_BY_ATTRIBUTE = frozenset({"vision.all_class_non_max_suppression"})
"""Operators whose tuples have as many fields as an attribute says."""
_KINDS: Mapping[str, str] = {
    "tensor": "Operand",
    "tensors": "Sequence[Operand] | Tensor",
    "shape": "Sequence[Dim | Tensor] | Tensor",
    "value": "object",
}
"""What may be given for a parameter that is no attribute."""


def main() -> None:
    """Write the stubs."""
    for name, text in stubs().items():
        (FOLDER / name).write_text(text)


def stubs() -> dict[str, str]:
    """The texts of the stubs, by their files' names; `graph_names` has the words itself."""
    rows = [row for name, row in OPS.items() if name not in WORDS]
    return {"operators.pyi": _operators(rows), "scalars.pyi": _scalars()}


def _operators(rows: Iterable[OpDef]) -> str:
    families: dict[str, list[OpDef]] = {}
    for row in sorted(rows, key=lambda r: r.name):
        families.setdefault(row.name.rpartition(".")[0], []).append(row)
    lines = [_OPERATORS]
    for row in families.pop("", []):
        lines += _function(row, "")
    for family, members in families.items():
        lines += [f"class {family}:"]
        for row in members:
            lines += ["    @staticmethod", *_function(row, "    ")]
    public = sorted({name.partition(".")[0] for name in (row.name for row in rows)})
    return _page(lines, public)


def _scalars() -> str:
    lines = [_SCALARS]
    for path, signature in sorted(SCALAR_SIGNATURES.items()):
        params = [f"{p.name}: Number" for p in signature.params if not p.named_only]
        head = f'def {path.removeprefix("T.")}({", ".join(params)}, *, dtype: str = "") -> Scalar:'
        lines += [head, *_doc(scalar_text(path), "    ")]
    return _page(lines, sorted(path.removeprefix("T.") for path in SCALAR_SIGNATURES))


def _page(lines: list[str], public: list[str]) -> str:
    names = "".join(f'    "{name}",\n' for name in public)
    return "\n".join(lines) + f"\n\n__all__ = [\n{names}]\n"


def _function(row: OpDef, margin: str) -> list[str]:
    params = [_parameter(p) for p in row.params]
    start, end = f"{margin}def {row.name.rpartition('.')[2]}(", f") -> {_result(row)}:"
    line = start + ", ".join(params) + end
    head = [line]
    if len(line) > _COLUMNS:
        head = [start, *(f"{margin}    {p}," for p in params), margin + end]
    return [*head, *_doc(docstring_of(row), margin + "    ")]


def _result(row: OpDef) -> str:
    """What a call gives, as the row's samples say: a tensor, or a tuple of tensors.

    ``Tensor`` is either, where an attribute says which of them it is.
    """
    counts: set[int] = set()
    for sample in () if row.samples is None else row.samples(0):
        found = infer_call(row, [type_of(arg) for arg in sample.args], sample.attrs)
        counts.add(len(found.fields) if isinstance(found, TupleType) else 0)
    if 0 in counts or not counts or row.name in _BY_ATTRIBUTE:
        return "Tensor"
    if len(counts) > 1:
        return "tuple[Tensor, ...]"
    return f"tuple[{', '.join(['Tensor'] * counts.pop())}]"


def _parameter(p: Param) -> str:
    kind = _KINDS[p.kind] if p.type is None else p.type.annotation
    if p.default is REQUIRED:
        return f"{p.name}: {kind}"
    if p.default is None and not kind.endswith("| None"):
        kind += " | None"
    return f"{p.name}: {kind} = {_value(p.default)}"


def _value(value: object) -> str:
    """A default as a program writes it."""
    if isinstance(value, DType | SymDim):
        return f'"{value}"'
    return repr(value).replace("'", '"')


def _doc(text: str, margin: str) -> list[str]:
    quoted = cleandoc(text).replace("\\", "\\\\").splitlines()
    if len(quoted) == 1:
        return [f'{margin}"""{quoted[0]}"""', ""]
    rest = [f"{margin}{line}".rstrip() for line in quoted[1:]]
    return [f'{margin}"""{quoted[0]}', *rest, f'{margin}"""', ""]


if __name__ == "__main__":
    main()
