"""What models are made of, as patterns: written once, found in what every exporter writes."""

from __future__ import annotations

from math import pi

from unity.ir.attrs import AttrValue
from unity.transform.pattern import Pattern, any_, computed, const, op, optional, through

VIEWS = ("permute_dims", "reshape", "squeeze", "strided_slice")


def convolution(steps: str = "nn.relu") -> Pattern:
    """A convolution, its bias or batch normalization, and an activation."""
    plain = op("nn.conv2d", any_("x"), const("weight"))
    return op(steps, plain + const("bias") | op("nn.batch_norm", plain) | plain)


def residual() -> Pattern:
    """A convolution with its bias or normalization to which something computed is added."""
    plain = op("nn.conv2d", any_("x"), const("weight"))
    whole = plain + const("bias") | op("nn.batch_norm", plain)
    return optional(whole + computed("shortcut"), lambda y: op("nn.relu", y))


def attention() -> Pattern:
    """``softmax(q k' * scale + mask) v``, the scale on scores or operands, views between."""

    def operand(name: str) -> Pattern:
        seen = through(VIEWS, any_(name))
        return optional(seen, lambda p: p * const("scale") | p / const("scale"))

    scores = operand("q") @ operand("k")
    scaled = scores * const("scale") | scores / const("scale") | scores
    return op("nn.softmax", optional(scaled, lambda s: s + any_("mask"))) @ any_("v")


def layer_norm() -> Pattern:
    """Centred, divided by the root of the mean square, scaled and shifted."""
    x = any_("x")
    centred = (x - op("mean", x, attrs={"keepdims": True})).named("centred")
    squares = op("square", centred) | centred * centred | op("power", centred, 2.0)
    deviation = op("sqrt", op("mean", squares, attrs={"keepdims": True}) + const("epsilon"))
    return optional(centred / deviation, lambda y: y * const("gamma"), lambda y: y + const("beta"))


def gelu() -> Pattern:
    """By the error function, or by the hyperbolic tangent."""
    x = any_("x")
    by_erf = op("erf", x / 2**0.5 | x * 0.5**0.5) + 1.0
    cube = op("power", x, 3.0) | x * (x * x)
    small = cube * 0.044715 | x * (x * (x * 0.044715))
    by_tanh = op("tanh", (x + small) * (2 / pi) ** 0.5) + 1.0
    inner = by_erf | by_tanh
    return (x * inner) * 0.5 | (x * 0.5) * inner | x * (inner * 0.5)


def swish() -> Pattern:
    """``x * sigmoid(x)``, a factor of one left by the exporter or not."""
    x = any_("x")
    return x * op("sigmoid", x | x * 1.0)


def _is_8_bits(value: AttrValue) -> bool:
    return str(value) in ("int8", "uint8")


def quantized_product(shared: bool = False) -> Pattern:
    """A product of what was rounded to 8 bits and a constant that was, too.

    Args:
        shared: Whether what was rounded may be read by others as well.
    """
    narrow = op(
        "quantize",
        any_("x"),
        const("scale"),
        const("zero"),
        attrs={"out_dtype": _is_8_bits},
        name="quantized",
    )
    back = op("dequantize", narrow, const("scale"), const("zero"))
    weight = op("dequantize", const("weight"), const("step"), const("offset"))
    return (back.escaping() if shared else back) @ weight
