"""FormByRecord: calls whose forms were measured are computed as their records say."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from unity.ir.dims import Dim, Symbol, dim, symbols_of
from unity.ir.graph import Binding, Body, Call, Constant, Function, Op, VarBinding
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.types import Type
from unity.ir.visit import map_body
from unity.ir.visiting.visit_graph import (
    map_bodies,
    map_type_dims,
    substitute_symbols_in_type,
)

from ...passes import Context, Pass
from ...seen import report_seen
from ..layout.blockable import CONVOLUTIONS
from .forms import FORMS

FORMED = "forms"
"""Name of the report, as JSON: for each call its form and what the record is called."""


@dataclass(frozen=True, slots=True)
class RecordedForm:
    """How a record says that some calls are computed.

    Attributes:
        call: What `call_identity` calls them.
        form: One of `unity.transform.graph.resolve.forms.FORMS`.
        about: What the record is called in explanations.
    """

    call: str
    form: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class FormByRecord(Pass):
    """Writes at calls, as their attribute `algorithm`, the form that was measured to be fastest.

    Stands before `Resolve`, whose first candidate is then that form. What a call says itself
    counts, and a form that can't be had where it stands is done without by the passes that make
    it. What was written is reported to the context as `FORMED`.

    >>> import numpy as np
    >>> from unity.script import parse, print_module
    >>> from unity.transform.graph import Normalize
    >>> weight = np.ones((8, 8, 3, 3), np.float32)
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 1, 8, 6, 6]) -> f32[Tensor, 1, 8, 6, 6]:
    ...     with R.dataflow():
    ...         y = R.nn.conv2d(x, R.const("weight"), padding=1)
    ...     return y
    ... ''', {"weight": weight})
    >>> before = Normalize()(before, Context())
    >>> call = before["main"].body.blocks[0].bindings[0].value
    >>> record = RecordedForm(call_identity(call), "winograd.2")
    >>> print(print_module(FormByRecord((record,))(before, Context())), end="")
    @script.function
    def main(x: f32[Tensor, 1, 8, 6, 6]) -> f32[Tensor, 1, 8, 6, 6]:
        with R.dataflow():
            y = R.nn.conv2d(x, R.const("weight"), padding=1, algorithm="winograd.2")
        return y

    Attributes:
        records: At most one for each call.
        watched: Calls that are reported to the context as `SEEN` where the program has them.
    """

    records: tuple[RecordedForm, ...] = ()
    watched: tuple[str, ...] = field(default=(), repr=False)

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each graph function, with the bodies nested in it."""
        of = {r.call: r for r in self.records if r.form in FORMS}  # a later version has others
        told: dict[str, tuple[str, str]] = {}
        if not of and not self.watched:
            return module
        seen: set[str] = set()
        functions = {
            name: _Writer(name, of, told, seen).function(f)
            for name, f in module.graph_functions().items()
        }
        report_seen(ctx, self.watched, seen)
        if of:
            ctx.reports[FORMED] = json.dumps(told)
        return module.with_(functions)


class _Writer:
    """Carries what is written at the calls of a function."""

    def __init__(
        self,
        name: str,
        of: Mapping[str, RecordedForm],
        told: dict[str, tuple[str, str]],
        seen: set[str],
    ) -> None:
        self.name = name
        self.of = of
        self.told = told
        self.seen = seen

    def function(self, function: Function) -> Function:
        body = self.body(function.body)
        return function if body is function.body else replace(function, body=body)

    def body(self, body: Body) -> Body:
        return map_body(body, self.binding, lambda result: result)

    def binding(self, binding: Binding) -> Binding:
        value = map_bodies(binding.value, self.body)
        if isinstance(binding, VarBinding) and isinstance(value, Call) and _is_open(value):
            identity = call_identity(value)
            self.seen.add(identity)
            record = self.of.get(identity)
            if record is not None:
                self.told[f"{self.name}/{binding.var.name}"] = record.form, record.about
                value = replace(value, attrs=value.attrs.with_(algorithm=record.form))
        return binding if value is binding.value else replace(binding, value=value)


def _is_open(call: Call) -> bool:
    """Whether it is of an operator that has forms, multiplies by a constant, and says none."""
    match call:
        case Call(Op(name), (_, Constant())) if name in (*CONVOLUTIONS, "matmul"):
            return call.attrs.get("algorithm") is None
        case _:
            return False


def call_identity(call: Call) -> str:
    """What a call is called in records: 32 hexadecimal digits.

    Equal are calls of one operator with the same attributes, but for the form, on operands of the
    same types, whatever their unknown sizes are called and their constants hold.

    Args:
        call: Of an operator, normalized.
    """
    assert isinstance(call.callee, Op)
    numbers = {s: dim(name) for s, name in numbered_sizes(call).items()}
    parts = [call.callee.name, str(call.attrs.without("algorithm"))]
    parts += [str(substitute_symbols_in_type(t, numbers)) for t in _types(call)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def numbered_sizes(call: Call) -> dict[Symbol, str]:
    """What a call's identity calls the unknown sizes of its operands: ``s0``, ``s1`` and so on."""
    found: dict[Symbol, str] = {}

    def note(size: Dim) -> Dim:
        for symbol in sorted(symbols_of(size) - found.keys(), key=lambda s: s.name):
            found[symbol] = f"s{len(found)}"
        return size

    for t in _types(call):
        map_type_dims(t, note)
    return found


def _types(call: Call) -> list[Type]:
    return [t for a in call.args if (t := atom_type(a)) is not None]
