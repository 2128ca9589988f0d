"""Converters of other packages: `register_converter` makes an operator of ONNX's files readable."""

from __future__ import annotations

from functools import partial

from unity.annotated import Kind
from unity.arguments import public
from unity.errors import UnityError
from unity.frontend.onnx.node import Converter
from unity.frontend.onnx.reading.load import DEFAULT_DOMAINS
from unity.frontend.onnx.table import REGISTERED, converter_of
from unity.machine.changed import OPERATORS, changed
from unity.registration import Registration


@partial(public, kinds={"Converter": Kind("a function of a node", callable)})
def register_converter(op: str, converter: Converter) -> Registration:
    """Make nodes of an operator readable in this process, those of a domain of your own.

    Args:
        op: The domain and the operator, ``"com.acme::Swish"``; without a domain ONNX's own is
            meant, for operators that Unity lacks.
        converter: Takes a node (`unity.frontend.onnx.node.Node`) and gives the value of its
            output, or a list of those of all outputs. It reads operands by ``node.tensor(0)`` and
            ``node.optional(1)``, attributes by ``node.float_of("beta", 1.0)`` and its like, and
            binds calls by ``node.op("multiply", x, y)``. What it does not implement it raises:
            ``node.gap("beta below 0")``. An attribute that it never read counts as such.

    Returns:
        A registration; ``with unity.register_converter(...):`` takes it back at the end.

    Raises:
        UnityError: The name is none, or there is a converter of this operator.
    """
    domain, mark, op_type = op.rpartition("::")
    if not op_type.isidentifier() or (mark and not domain):
        raise UnityError(
            f"{op!r} names no operator of ONNX", hint='write "domain::Operator", "com.acme::Swish"'
        )
    key = ("" if domain in DEFAULT_DOMAINS else domain, op_type)
    if converter_of(*key) is not None:
        whose = "is registered already" if key in REGISTERED else "is Unity's own"
        raise UnityError(
            f"the converter of {op!r} {whose}",
            hint="remove that registration first" if key in REGISTERED else "it can't be replaced",
        )
    changed(OPERATORS)
    REGISTERED[key] = converter
    return Registration(op, partial(_remove, key, converter))


def _remove(key: tuple[str, str], converter: Converter) -> None:
    if REGISTERED.get(key) is converter:
        del REGISTERED[key]
