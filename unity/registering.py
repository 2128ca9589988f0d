"""Operators of other packages: `register_op` takes a whole row into the table.

The row is complete or refused: another package's operator is typed, printed, fused, compiled and
compared like ours, by the same rows. Its samples are run when it is registered, so that rows that
disagree are found there and not in a model's numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from keyword import iskeyword

import numpy as np

from unity.arguments import REQUIRED, public
from unity.errors import UnityError
from unity.ir.types import Shape, TensorType
from unity.machine.changed import OPERATORS, changed
from unity.op.guarded import check_kinds, guarded, samples_of
from unity.op.infer import infer_call
from unity.op.registry import OpDef
from unity.op.sampling import type_of
from unity.op.table import OPS
from unity.registration import Registration
from unity.sample_checks import check_samples
from unity.script import graph_names

BUILT_IN = frozenset(OPS)
"""Operators of our own, which nobody replaces."""
_HINT = "a row is unity.op.registry.OpDef; docs/guide/operators.md writes one"


@partial(public, hints={"an OpDef": _HINT})
def register_op(op: OpDef, *, check: bool = True) -> Registration:
    """Make an operator known in this process, under ``R.<name>``.

    Programs then call it in `script.function`, by `GraphBuilder` and `unity.nn`, and it is printed
    and read back, fused by its pattern, compiled by its compute and interpreted by its reference.
    A model of ONNX reaches it by a converter (`register_converter`).

    Args:
        op: The row. What a built-in operator has it must have: parameters, a type rule, a
            reference in numpy, a compute, samples and a text.
        check: Whether its samples are run: whether the type rule and the compute say what the
            reference gives. Leave it out only where that is tested already.

    Returns:
        A registration; ``with unity.register_op(op):`` takes it back at the end, as
        `Registration.remove` does. A module that uses the operator can't be compiled then.

    Raises:
        UnityError: The name is taken or no name, a row is missing or not what it should be, one
            raises, or two disagree on a sample; the message says which.
    """
    if isinstance(op.name, str):
        _check_name(op)
    _check_rows(op)
    op = guarded(op)
    samples_of(op)
    if check:
        check_samples(op)
        _check_pattern(op)
    changed(OPERATORS)
    OPS[op.name] = op  # guarded: rules are called later, too
    return Registration(f"R.{op.name}", partial(_remove, op))


def _remove(op: OpDef) -> None:
    if OPS.get(op.name) is op:
        del OPS[op.name]


def _check_name(op: OpDef) -> None:
    parts = op.name.split(".")
    if not all(_is_name(p) and not p.startswith("_") for p in parts):
        raise UnityError(
            f"{op.name!r} can't name an operator",
            hint="names are identifiers with dots between them, as in 'acme.swish', and no "
            "keywords of Python, which printed programs are",
        )
    if op.name in BUILT_IN:
        raise UnityError(
            f"{op.name!r} is an operator of Unity's own",
            hint=f"choose another name, 'acme.{op.name}' say: programs mean ours by that one",
        )
    if op.name in OPS:
        raise UnityError(
            f"an operator {op.name!r} is registered already",
            hint="remove that registration first, or use `with unity.register_op(op):`",
        )
    if parts[0] in vars(graph_names):
        raise UnityError(
            f"R.{parts[0]} is a word of the language and can't begin an operator's name"
        )
    for other in OPS:
        if op.name.startswith(f"{other}.") or other.startswith(f"{op.name}."):
            raise UnityError(
                f"{op.name!r} is below or above the operator {other!r}",
                hint="a name is an operator's or a family's, not both",
            )


def _is_name(text: str) -> bool:
    return text.isidentifier() and not iskeyword(text)


def _check_rows(op: OpDef) -> None:
    rows = {
        "reference": op.reference,
        "compute": op.compute or op.expand,
        "samples": op.samples,
        "doc": None if isinstance(op.doc, str) and not op.doc.strip() else op.doc,
    }
    missing = [name for name, row in rows.items() if row is None]
    if missing:
        raise UnityError(f"the operator {op.name!r} lacks {', '.join(missing)}", hint=_HINT)
    check_kinds(op)
    names = [p.name for p in op.params]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise UnityError(f"the operator {op.name!r} has two parameters {twice!r}")
    for param in op.params:
        if not _is_name(param.name):
            raise UnityError(f"the operator {op.name!r}: {param.name!r} can't name a parameter")
        if (param.kind == "attr") != (param.type is not None):
            raise UnityError(
                f"the operator {op.name!r}: {param.name!r} needs a type if it is an attribute, "
                "and only then",
                hint="unity.op.registry.attr(name, type) makes an attribute",
            )
    optional = [p for p in op.params if p.kind != "attr"]
    for before, after in pairwise(optional):
        if before.default is not REQUIRED and after.default is REQUIRED:
            raise UnityError(
                f"the operator {op.name!r}: {after.name!r} must be given, behind {before.name!r}, "
                "which may be left out",
            )
    if not op.pure:
        raise UnityError(
            f"the operator {op.name!r} is not pure",
            hint="what has an effect is a Python function: R.call_python(...)",
        )
    if op.onnx is not None:
        raise UnityError(
            f"the operator {op.name!r} names ONNX's {op.onnx!r}",
            hint=f'leave it out, and unity.register_converter("{op.onnx}", ...)',
        )


def _check_pattern(op: OpDef) -> None:
    """What fuses element by element has the shape of its operands, or what they broadcast to."""
    if op.pattern not in ("elementwise", "broadcast"):
        return
    assert op.samples is not None
    for number, sample in enumerate(op.samples(0)):
        kinds = [type_of(a) for a in sample.args]
        result = infer_call(op, kinds, sample.attrs)
        shapes = [k.shape if isinstance(k, TensorType) else None for k in (*kinds, result)]
        if not _is_of_pattern(op.pattern, [s for s in shapes if isinstance(s, tuple)]):
            wanted = "the same shape" if op.pattern == "elementwise" else "the broadcast shape"
            raise UnityError(
                f"{op.name}, sample {number}: the pattern {op.pattern!r} is for results of "
                f"{wanted}, got {', '.join(map(str, kinds))} -> {result}",
                hint="'injective' is for what moves elements, 'opaque' fuses with nothing",
            )


def _is_of_pattern(pattern: str, shapes: Sequence[Shape]) -> bool:
    """Whether the last of some shapes is that of all others, or what they broadcast to."""
    *operands, result = [tuple(d for d in s if isinstance(d, int)) for s in shapes]
    if pattern == "elementwise":
        return all(s == result for s in operands)
    return np.broadcast_shapes(*operands) == result
