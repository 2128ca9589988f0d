"""The scalar functions of ``T``, made by `python -m unity.script.stubs`."""

from .annotations import Number, Scalar

def abs(x: Number, *, dtype: str = "") -> Scalar:
    """The absolute value."""

def acos(x: Number, *, dtype: str = "") -> Scalar:
    """The angle of a cosine."""

def acosh(x: Number, *, dtype: str = "") -> Scalar:
    """The inverse of cosh."""

def and_(a: Number, b: Number, *, dtype: str = "") -> Scalar:
    """Logical and of bools, bitwise and of integers."""

def asin(x: Number, *, dtype: str = "") -> Scalar:
    """The angle of a sine."""

def asinh(x: Number, *, dtype: str = "") -> Scalar:
    """The inverse of sinh."""

def atan(x: Number, *, dtype: str = "") -> Scalar:
    """The angle of a tangent."""

def atan2(x: Number, y: Number, *, dtype: str = "") -> Scalar:
    """The angle of the point with ordinate x and abscissa y."""

def atanh(x: Number, *, dtype: str = "") -> Scalar:
    """The inverse of tanh."""

def bits(x: Number, *, dtype: str = "") -> Scalar:
    """The bits of a float, as an integer."""

def ceil(x: Number, *, dtype: str = "") -> Scalar:
    """The least integer not below x."""

def clz(x: Number, *, dtype: str = "") -> Scalar:
    """How many bits above the first set one are not."""

def cos(x: Number, *, dtype: str = "") -> Scalar:
    """The cosine of an angle in radians."""

def cosh(x: Number, *, dtype: str = "") -> Scalar:
    """The hyperbolic cosine."""

def erf(x: Number, *, dtype: str = "") -> Scalar:
    """The error function."""

def exp(x: Number, *, dtype: str = "") -> Scalar:
    """e to the power of x."""

def exp2(x: Number, *, dtype: str = "") -> Scalar:
    """2 to the power of x."""

def expm1(x: Number, *, dtype: str = "") -> Scalar:
    """e to the power of x, minus 1, exact near 0."""

def floor(x: Number, *, dtype: str = "") -> Scalar:
    """The greatest integer not above x."""

def floordiv(a: Number, b: Number, *, dtype: str = "") -> Scalar:
    """The quotient of integers, rounded down as a // b."""

def floormod(a: Number, b: Number, *, dtype: str = "") -> Scalar:
    """The remainder of integers, with the sign of b as a % b."""

def fma(x: Number, y: Number, z: Number, *, dtype: str = "") -> Scalar:
    """x * y + z, rounded once or twice as the code generator likes."""

def fmax(a: Number, b: Number, *, dtype: str = "") -> Scalar:
    """The greater of two floats; one of them where the other is NaN."""

def fmin(a: Number, b: Number, *, dtype: str = "") -> Scalar:
    """The lesser of two floats; one of them where the other is NaN."""

def fmod(x: Number, y: Number, *, dtype: str = "") -> Scalar:
    """The remainder of x / y, with the sign of x."""

def isfinite(x: Number, *, dtype: str = "") -> Scalar:
    """Whether x is a number, not infinite."""

def isinf(x: Number, *, dtype: str = "") -> Scalar:
    """Whether x is infinite."""

def isnan(x: Number, *, dtype: str = "") -> Scalar:
    """Whether x is not a number."""

def likely(x: Number, *, dtype: str = "") -> Scalar:
    """The bool x, and a hint that it mostly is true."""

def log(x: Number, *, dtype: str = "") -> Scalar:
    """The natural logarithm."""

def log10(x: Number, *, dtype: str = "") -> Scalar:
    """The logarithm to base 10."""

def log1p(x: Number, *, dtype: str = "") -> Scalar:
    """The natural logarithm of 1 + x, exact near 0."""

def log2(x: Number, *, dtype: str = "") -> Scalar:
    """The logarithm to base 2."""

def max(a: Number, b: Number, *, dtype: str = "") -> Scalar:
    """The greater of two; NaN when either is."""

def min(a: Number, b: Number, *, dtype: str = "") -> Scalar:
    """The lesser of two; NaN when either is."""

def of_bits(x: Number, *, dtype: str = "") -> Scalar:
    """The float of such bits."""

def or_(a: Number, b: Number, *, dtype: str = "") -> Scalar:
    """Logical or of bools, bitwise or of integers."""

def popcount(x: Number, *, dtype: str = "") -> Scalar:
    """How many bits are set."""

def pow(x: Number, y: Number, *, dtype: str = "") -> Scalar:
    """x to the power of y."""

def prefetch(x: Number, *, dtype: str = "") -> Scalar:
    """Evaluated alone: what is loaded is needed soon."""

def round(x: Number, *, dtype: str = "") -> Scalar:
    """The nearest integer, half to even as in ONNX and numpy."""

def rsqrt(x: Number, *, dtype: str = "") -> Scalar:
    """1 over the square root."""

def shl(a: Number, b: Number, *, dtype: str = "") -> Scalar:
    """a shifted left by b bits."""

def shr(a: Number, b: Number, *, dtype: str = "") -> Scalar:
    """a shifted right by b bits, keeping its sign if it has one."""

def sigmoid(x: Number, *, dtype: str = "") -> Scalar:
    """1 / (1 + exp(-x))."""

def sign(x: Number, *, dtype: str = "") -> Scalar:
    """-1, 0 or 1."""

def sin(x: Number, *, dtype: str = "") -> Scalar:
    """The sine of an angle in radians."""

def sinh(x: Number, *, dtype: str = "") -> Scalar:
    """The hyperbolic sine."""

def sqrt(x: Number, *, dtype: str = "") -> Scalar:
    """The square root."""

def tan(x: Number, *, dtype: str = "") -> Scalar:
    """The tangent of an angle in radians."""

def tanh(x: Number, *, dtype: str = "") -> Scalar:
    """The hyperbolic tangent."""

def trunc(x: Number, *, dtype: str = "") -> Scalar:
    """The integer part."""

def truncdiv(a: Number, b: Number, *, dtype: str = "") -> Scalar:
    """The quotient of integers, rounded toward zero as in C."""

def truncmod(a: Number, b: Number, *, dtype: str = "") -> Scalar:
    """The remainder of integers, with the sign of a as in C."""

def xor(a: Number, b: Number, *, dtype: str = "") -> Scalar:
    """Bitwise exclusive or."""


__all__ = [
    "abs",
    "acos",
    "acosh",
    "and_",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bits",
    "ceil",
    "clz",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "floordiv",
    "floormod",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "isfinite",
    "isinf",
    "isnan",
    "likely",
    "log",
    "log10",
    "log1p",
    "log2",
    "max",
    "min",
    "of_bits",
    "or_",
    "popcount",
    "pow",
    "prefetch",
    "round",
    "rsqrt",
    "shl",
    "shr",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "truncdiv",
    "truncmod",
    "xor",
]
