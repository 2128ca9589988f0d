"""What an operator is: one value with its rows. The table of all of them is `unity.op.table`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from unity.arguments import REQUIRED, Named, Parameter, Signature
from unity.errors import Span, UnityError
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import Symbol, SymDim, dim
from unity.ir.dtype import Array, DType
from unity.ir.graph import Expr, Var
from unity.ir.stmt import Buffer, Stmt
from unity.ir.types import Type
from unity.te import Tensor

from .attribute import AttrType

if TYPE_CHECKING:
    from .emitter import Emitter

ParamKind: TypeAlias = Literal["tensor", "tensors", "shape", "value", "attr"]
"""An argument: a tensor, a tuple of tensors, a shape value, any value, or a static attribute."""
Pattern: TypeAlias = Literal[
    "elementwise", "broadcast", "injective", "reduction", "out_fusable", "opaque"
]
"""How an op may fuse, from the most to the least freely (TVM's OpPatternKind)."""


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of an operator.

    Attributes:
        name: Its name.
        kind: What is given for it.
        default: What it is if nothing is given; `REQUIRED`, or None for an optional tensor.
        type: What an attribute may hold; see `attr`.
        numbers: The dtype that a Python number given for a tensor takes, where that is not the
            dtype of the other tensors.
    """

    name: str
    kind: ParamKind = "tensor"
    default: object = REQUIRED
    type: AttrType | None = None
    numbers: DType | None = None

    @property
    def lends_dtype(self) -> bool:
        """Whether numbers among a call's tensors take this one's dtype."""
        return self.numbers is None and self.name not in ("condition", "indices")

    def takes(self, value: AttrValue) -> bool:
        """Whether an attribute may have this value: of its type, or None where that is usual."""
        assert self.type is not None, f"the attribute {self.name} has no type"
        return self.type.fits(value) or (value is None and self.default is None)


def attr(name: str, type: AttrType, default: object = REQUIRED) -> Param:
    """A parameter that is an attribute."""
    return Param(name, "attr", default, type)


@dataclass(slots=True)
class OpCall:
    """A call as a type rule sees it: the types of the arguments and the attributes.

    A shape argument has a `ShapeType` (with dims where they are known), a tuple of tensors a
    `TupleType`. An absent optional tensor is missing from the end of `args`.
    """

    op: OpDef
    args: tuple[Type, ...]
    attrs: Attrs
    span: Span | None = None
    fresh: Callable[[str], Symbol] = field(default=dim)

    def error(self, message: str, hint: str | None = None) -> UnityError:
        """An error at this call, to be raised by the rule."""
        return UnityError(f"{self.op.name}: {message}", self.span, hint)

    def integer(self, name: str) -> int:
        """An attribute that must be an int."""
        value = self.attrs[name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(f"{name!r} must be an int, got {value!r}")
        return value

    def ints(self, name: str) -> tuple[int, ...]:
        """An attribute that must be a tuple of ints (one int stands for a tuple of it)."""
        value = self.attrs[name]
        items = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(v, int) and not isinstance(v, bool) for v in items):
            raise self.error(f"{name!r} must hold ints, got {value!r}")
        return tuple(v for v in items if isinstance(v, int))

    def flag(self, name: str) -> bool:
        """An attribute that must be a bool."""
        value = self.attrs[name]
        if not isinstance(value, bool):
            raise self.error(f"{name!r} must be True or False, got {value!r}")
        return value

    def number(self, name: str) -> float:
        """An attribute that must be an int or a float."""
        value = self.attrs[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"{name!r} must be a number, got {value!r}")
        return value

    def dtype(self, name: str = "dtype") -> DType:
        """An attribute that must be a dtype."""
        value = self.attrs[name]
        if not isinstance(value, DType):
            raise self.error(f"{name!r} must be a dtype, got {value!r}")
        return value


TypeRule: TypeAlias = Callable[[OpCall], Type]
ComputeArg: TypeAlias = "Tensor | tuple[Tensor, ...]"
ComputeRule: TypeAlias = Callable[
    [Sequence[ComputeArg], Attrs, Type], "Tensor | tuple[Tensor, ...]"
]
"""(tensor arguments, attributes, result type) -> result; shape arguments are left out: the result
type tells them."""
RefArg: TypeAlias = "Array | tuple[Array, ...] | tuple[int, ...]"
ReferenceRule: TypeAlias = Callable[[Sequence[RefArg], Attrs], RefArg]
Extents: TypeAlias = tuple[int, ...]
MultiplyAdds: TypeAlias = Callable[[Sequence[Extents], Extents], float]
"""(the operands' extents, the result's) -> how many products are added up in all."""
OpClass: TypeAlias = Literal["contraction", "convolution", "rows", "elementwise", "movement"]
"""A kind of work, for whose speed estimates have one figure; see `Backend.efficiency`."""
ExpandRule: TypeAlias = Callable[["Emitter", Sequence[Expr], Attrs, Type], Expr]
"""(emits calls, arguments, attributes, result type) -> the same by other operators."""
InPlaceRule: TypeAlias = Callable[[Sequence[Buffer], Attrs], Stmt]
"""(a buffer for each tensor argument, attributes) -> what turns the first one into the result."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One generated call to test an op with: concrete arrays (or shapes, tuples), attributes."""

    args: tuple[RefArg, ...]
    attrs: Attrs


SUM_OF_PRODUCTS = 2.0**-22
"""What a float32 sum of products may be off, of the sum of the products' absolute values.

Four units of rounding (2**-24). Each addition rounds once, so that for n of them in any order the
bound is n units (Higham, Accuracy and Stability, 3.1); what is met grows as the root of n, and of
partial sums, which are a part of the whole. Pairs added up first (vdpbf16ps, tdpbf16ps), with a
rounding between or without, are off from a chain of multiply-adds by what two chains are. (Those
instructions take denormals as zero, which is less than this of any sum that holds a normal number.)
"""


@dataclass(frozen=True, slots=True)
class OpDef:
    """An operator and its rows.

    Attributes:
        name: Its name, ``nn.conv2d``.
        params: Its parameters in order: tensors and shapes become arguments of a `Call`, attributes
            its attrs.
        infer: The type rule.
        reference: What it means, in numpy. Outputs have exactly the dtype of the type rule.
        compute: What it means as a tensor expression; None for an op that is no kernel, or several.
        expand: What it is in terms of other operators, which then need no compute of their own: the
            pass `ExpandOps` puts them in its place.
        in_place: How it writes its result over its first argument, where that may be done; None for
            an op that has no shorter way than computing all of it.
        pattern: How it fuses.
        pure: Whether it may be removed, duplicated and reordered.
        samples: Generates calls for the tests: random shapes, dtypes, edge cases, empty tensors.
        precision: Where a narrow float may take the place of float32; see `ConvertPrecision`.
        tolerance: Relative error allowed between compiled float32 code and the reference.
        sums: Whether each result is a sum of products of the arguments, added up in an order that
            each machine's instructions choose: compiled float32 code may then be off by
            `SUM_OF_PRODUCTS` of the products' absolute values added up, not of what they leave.
        finite: Whether an elementwise op makes finite numbers of finite ones (a division: by what
            is not zero), so that what fills a layout up may go through it.
        multiply_adds: How many products its results are the sums of; None for an op whose work is
            an operation for each element of the result.
        op_class: What kind of work it is to estimates; where it is None, its pattern tells.
        onnx: ONNX's operator that computes the same of the same operands, without attributes.
        doc: What it computes, with shapes and the source of its semantics.
    """

    name: str
    params: tuple[Param, ...]
    infer: TypeRule
    reference: ReferenceRule | None
    doc: str
    compute: ComputeRule | None = None
    expand: ExpandRule | None = None
    in_place: InPlaceRule | None = None
    pattern: Pattern = "opaque"
    pure: bool = True
    samples: Callable[[int], Sequence[Sample]] | None = None
    precision: Literal["always", "operands", "follow", "never"] = "follow"
    tolerance: float = 1e-5
    sums: bool = False
    finite: bool = False
    multiply_adds: MultiplyAdds | None = None
    op_class: OpClass | None = None
    onnx: str | None = None

    def bind(
        self, args: Sequence[object], kwargs: dict[str, object], span: Span | None = None
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """Sort Python arguments into (call arguments, attributes), by position or name.

        Raises:
            UnityError: Too many, unknown, repeated or missing arguments.
        """
        given = self.signature.bind(args, [Named(k, v) for k, v in kwargs.items()], span).named
        call_args: list[object] = []
        attrs: dict[str, object] = {}
        for param in self.params:
            value = given.get(param.name, param.default)
            if param.kind == "attr":
                attrs[param.name] = value
            elif value is not None:
                call_args.append(value)
        return tuple(call_args), attrs

    @property
    def signature(self) -> Signature:
        """What a call takes."""
        return _signature(self.name, self.params)

    @property
    def usage(self) -> str:
        """The signature, for messages."""
        return self.signature.usage


@cache
def _signature(name: str, params: tuple[Param, ...]) -> Signature:
    return Signature(name, tuple(Parameter(p.name, p.default) for p in params))


def shown_value(value: object) -> str:
    """An attribute's value in a message."""
    return repr(str(value)) if isinstance(value, DType | SymDim) else repr(value)


def array_arg(args: Sequence[RefArg]) -> Array:
    """The first argument of a reference, a tensor."""
    x = args[0]
    assert not isinstance(x, tuple), x
    return x


def int_attr(attrs: Attrs, name: str) -> int:
    """An attribute that is an int."""
    value = attrs[name]
    assert isinstance(value, int), (name, value)
    return value


def ints_attr(attrs: Attrs, name: str) -> tuple[int, ...]:
    """An attribute that is a tuple of ints."""
    value = attrs[name]
    assert isinstance(value, tuple), (name, value)
    return tuple(v for v in value if isinstance(v, int))


def attr_value(value: object) -> AttrValue:
    """A Python value as an attribute: lists become tuples.

    Raises:
        UnityError: The value can't be one.
    """
    if isinstance(value, list | tuple):
        return tuple(attr_value(v) for v in value)
    if value is None or isinstance(value, bool | int | float | str | DType | SymDim):
        return value
    if isinstance(value, Var):
        message = f"an attribute is known when the program is compiled, {value.name!r} when it runs"
        raise UnityError(message, hint="give a number, or use an operator that takes a tensor here")
    raise UnityError(f"an attribute can't hold {value!r}")


def axes_attr(attrs: Attrs, name: str, rank: int) -> tuple[int, ...]:
    """Axes (None means all, an int one), counted from the front, in a compute or reference rule."""
    value = attrs[name]
    if value is None:
        return tuple(range(rank))
    items = value if isinstance(value, tuple) else (value,)
    return tuple(int(v) % rank for v in items if isinstance(v, int))


def dtype_attr(attrs: Attrs, name: str = "dtype") -> DType:
    """An attribute that is a dtype."""
    value = attrs[name]
    assert isinstance(value, DType), (name, value)
    return value


def flag_attr(attrs: Attrs, name: str) -> bool:
    """An attribute that is a bool."""
    value = attrs[name]
    assert isinstance(value, bool), (name, value)
    return value
