"""Expressions as scripts build them: each holds a node of Relay's syntax.

Two objects of one node are equal, so that a node that several hold is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay import syntax
from unity.frontend.relay.calls import operator_call
from unity.frontend.relay.schema import signature
from unity.frontend.relay.text.printing import print_expression

from .attributes import Attributes, attribute_of
from .inference import type_of_expr
from .nd import NDArray
from .places import here
from .types import CheckedType, Dim, checked, dtype_of, tensor_type

_NARROW = {"float64": "float32", "int64": "int32"}


class Expr:
    """An expression.

    Attributes:
        node: It as syntax.
    """

    __slots__ = ("node",)

    def __init__(self, node: syntax.Expr) -> None:
        self.node = node

    def __eq__(self, other: object) -> bool:
        """Whether it is the same node, not one that computes the same."""
        return isinstance(other, Expr) and other.node is self.node

    def __hash__(self) -> int:
        return hash(self.node)

    same_as = __eq__

    def astext(self, show_meta_data: bool = True) -> str:
        """Relay's text of it, for people."""
        return print_expression(self.node)

    def __repr__(self) -> str:
        return self.astext()

    @property
    def checked_type(self) -> CheckedType:
        """Its type; what it reads must be declared."""
        return checked(type_of_expr(self.node))

    def astype(self, dtype: object) -> Expr:
        """Cast to a dtype."""
        return operation("cast", self, dtype=str(dtype_of(dtype)))

    def __call__(self, *args: Expr | Sequence[Expr]) -> Call:
        """A call of it, where it is a function."""
        return Call(self, args)

    def __neg__(self) -> Expr:
        return operation("negative", self)

    def __add__(self, other: Expr) -> Expr:
        return operation("add", self, other)

    def __sub__(self, other: Expr) -> Expr:
        return operation("subtract", self, other)

    def __mul__(self, other: Expr) -> Expr:
        return operation("multiply", self, other)

    def __truediv__(self, other: Expr) -> Expr:
        return operation("divide", self, other)

    def __lt__(self, other: Expr) -> Expr:
        return operation("less", self, other)

    def __le__(self, other: Expr) -> Expr:
        return operation("less_equal", self, other)

    def __gt__(self, other: Expr) -> Expr:
        return operation("greater", self, other)

    def __ge__(self, other: Expr) -> Expr:
        return operation("greater_equal", self, other)

    def __radd__(self, other: Expr) -> Expr:
        return operation("add", other, self)

    def __rsub__(self, other: Expr) -> Expr:
        return operation("subtract", other, self)

    def __rmul__(self, other: Expr) -> Expr:
        return operation("multiply", other, self)

    def __rtruediv__(self, other: Expr) -> Expr:
        return operation("divide", other, self)


def node_of(value: object) -> syntax.Expr:
    """The syntax of an operand: an expression, or a list of them, which is a tuple.

    Raises:
        UnityError: It is something else.
    """
    match value:
        case Expr():
            return value.node
        case TupleWrapper():
            return value.astuple().node
        case list() | tuple():
            return syntax.Tuple(tuple(map(node_of, value)), here())
        case bool() | int() | float() | np.generic() | np.ndarray():
            raise UnityError(f"convert {str(value)[:40]} with relay.const first", here())
        case _:
            raise UnityError(f"an expression is needed, got {type(value).__name__}", here())


def operation(name: str, *args: object, **attributes: syntax.AttrValue) -> Expr:
    """A call of an operator, with its attributes as Relay has them."""
    nodes = tuple(map(node_of, args))
    return wrap(operator_call(syntax.Op(name), nodes, attributes, here()))


class Var(Expr):
    """A variable."""

    def __init__(self, name_hint: str, type_annotation: syntax.Type | None = None) -> None:
        super().__init__(syntax.Var(name_hint, type_annotation, here()))

    @property
    def name_hint(self) -> str:
        """What it is called."""
        assert isinstance(self.node, syntax.Var)
        return self.node.name

    @property
    def type_annotation(self) -> syntax.Type | None:
        """The type that it is declared with."""
        assert isinstance(self.node, syntax.Var)
        return self.node.type


class GlobalVar(Expr):
    """A function of a module."""

    def __init__(self, name_hint: str) -> None:
        super().__init__(syntax.GlobalVar(name_hint, here()))

    @property
    def name_hint(self) -> str:
        """What it is called."""
        assert isinstance(self.node, syntax.GlobalVar)
        return self.node.name


class Constant(Expr):
    """A tensor."""

    @property
    def data(self) -> NDArray:
        """Its numbers, not to be written."""
        assert isinstance(self.node, syntax.Constant)
        return self.node.value.view(NDArray)


class Call(Expr):
    """A call: of an operator, or of a function."""

    def __init__(
        self, op: Expr, args: Sequence[object] = (), attrs: Mapping[str, object] | None = None
    ) -> None:
        nodes = tuple(map(node_of, args))
        if isinstance(op.node, syntax.Op):
            given = {name: attribute_of(v) for name, v in (attrs or {}).items() if v is not None}
            super().__init__(operator_call(op.node, nodes, given, here()))
        else:
            super().__init__(syntax.Call(op.node, nodes, {}, (), here()))

    @property
    def op(self) -> Expr:
        """What it calls; `name` of an operator."""
        assert isinstance(self.node, syntax.Call)
        return wrap(self.node.callee)

    @property
    def args(self) -> list[Expr]:
        """What it calls it with."""
        assert isinstance(self.node, syntax.Call)
        return [wrap(a) for a in self.node.arguments]

    @property
    def attrs(self) -> Attributes:
        """The attributes, defaults included."""
        assert isinstance(self.node, syntax.Call)
        return Attributes.of(self.node.attributes)


class Op(Expr):
    """An operator."""

    @staticmethod
    def get(name: str) -> Op:
        """The operator of a name.

        Raises:
            UnityError: There is none.
        """
        if signature(name) is None:
            raise UnityError(f"Relay has no operator {name!r}", here())
        found = wrap(syntax.Op(name))
        assert isinstance(found, Op)
        return found

    def __eq__(self, other: object) -> bool:
        """Whether it is the operator of the same name."""
        return isinstance(other, Op) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    same_as = __eq__

    @property
    def name(self) -> str:
        """What it is called."""
        assert isinstance(self.node, syntax.Op)
        return self.node.name


class Tuple(Expr):
    """A tuple."""

    def __init__(self, fields: Sequence[object]) -> None:
        super().__init__(syntax.Tuple(tuple(map(node_of, fields)), here()))

    @property
    def fields(self) -> list[Expr]:
        """What it holds."""
        assert isinstance(self.node, syntax.Tuple)
        return [wrap(f) for f in self.node.fields]

    def __getitem__(self, index: int) -> Expr:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)


class TupleGetItem(Expr):
    """A field of a tuple."""

    def __init__(self, tuple_value: object, index: int) -> None:
        super().__init__(syntax.TupleGetItem(node_of(tuple_value), index, here()))

    @property
    def tuple_value(self) -> Expr:
        """The tuple."""
        assert isinstance(self.node, syntax.TupleGetItem)
        return wrap(self.node.tuple)

    @property
    def index(self) -> int:
        """Which field it is."""
        assert isinstance(self.node, syntax.TupleGetItem)
        return self.node.index


class If(Expr):
    """A choice, by a scalar bool."""

    def __init__(self, cond: object, true_branch: object, false_branch: object) -> None:
        parts = node_of(cond), node_of(true_branch), node_of(false_branch)
        super().__init__(syntax.If(*parts, here()))

    @property
    def choice(self) -> syntax.If:
        """It as syntax."""
        assert isinstance(self.node, syntax.If)
        return self.node

    @property
    def cond(self) -> Expr:
        """What decides."""
        return wrap(self.choice.condition)

    @property
    def true_branch(self) -> Expr:
        """Its value where that is true."""
        return wrap(self.choice.then)

    @property
    def false_branch(self) -> Expr:
        """Its value elsewhere."""
        return wrap(self.choice.otherwise)


class Let(Expr):
    """A variable bound to a value within a body."""

    def __init__(self, variable: Var, value: object, body: object) -> None:
        assert isinstance(variable.node, syntax.Var)
        super().__init__(syntax.Let(variable.node, node_of(value), node_of(body), here()))

    @property
    def binding(self) -> syntax.Let:
        """It as syntax."""
        assert isinstance(self.node, syntax.Let)
        return self.node

    @property
    def var(self) -> Expr:
        """The variable."""
        return wrap(self.binding.var)

    @property
    def value(self) -> Expr:
        """What it is bound to."""
        return wrap(self.binding.value)

    @property
    def body(self) -> Expr:
        """What is computed with it."""
        return wrap(self.binding.body)


class Function(Expr):
    """A function."""

    def __init__(
        self,
        params: Sequence[Var],
        body: object,
        ret_type: syntax.Type | None = None,
        type_params: Sequence[syntax.TypeVar] | None = None,
        attrs: Mapping[str, syntax.AttrValue] | None = None,
    ) -> None:
        variables = tuple(p.node for p in params if isinstance(p.node, syntax.Var))
        own = tuple(t.name for t in type_params or ())
        made = syntax.Function(variables, node_of(body), ret_type, own, dict(attrs or {}), here())
        super().__init__(made)

    @property
    def function(self) -> syntax.Function:
        """It as syntax."""
        assert isinstance(self.node, syntax.Function)
        return self.node

    @property
    def params(self) -> list[Expr]:
        """Its parameters."""
        return [wrap(p) for p in self.function.params]

    @property
    def body(self) -> Expr:
        """Its value."""
        return wrap(self.function.body)

    @property
    def ret_type(self) -> syntax.Type | None:
        """The declared type of its value."""
        return self.function.result

    @property
    def attrs(self) -> dict[str, syntax.AttrValue]:
        """Its attributes."""
        return dict(self.function.attributes)

    def with_attr(self, name: str, value: syntax.AttrValue) -> Function:
        """It with one attribute more."""
        old = self.function
        made = syntax.Function(
            old.params, old.body, old.result, old.type_params, {**old.attributes, name: value}
        )
        found = wrap(made)
        assert isinstance(found, Function)
        return found


class TupleWrapper:
    """The results of a call that has several, to be taken apart as a Python tuple is.

    Args:
        tuple_value: The call.
        size: How many.
    """

    def __init__(self, tuple_value: Expr, size: int) -> None:
        self.tuple_value = tuple_value
        self.size = size

    def astuple(self) -> Expr:
        """The tuple as one expression."""
        return self.tuple_value

    def __getitem__(self, index: int) -> Expr:
        if not -self.size <= index < self.size:
            raise IndexError(f"{index} of {self.size} results")
        return TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Expr]:
        return (self[i] for i in range(self.size))

    def __repr__(self) -> str:
        return f"TupleWrapper({self.tuple_value!r}, {self.size})"


_KINDS: dict[type[syntax.Expr], type[Expr]] = {
    syntax.Var: Var,
    syntax.GlobalVar: GlobalVar,
    syntax.Constant: Constant,
    syntax.Call: Call,
    syntax.Op: Op,
    syntax.Tuple: Tuple,
    syntax.TupleGetItem: TupleGetItem,
    syntax.If: If,
    syntax.Let: Let,
    syntax.Function: Function,
}


def wrap(node: syntax.Expr) -> Expr:
    """An expression of a node."""
    kind = _KINDS.get(type(node), Expr)
    found = kind.__new__(kind)
    Expr.__init__(found, node)
    return found


def var(
    name_hint: str,
    type_annotation: syntax.Type | CheckedType | str | None = None,
    shape: Sequence[Dim] | None = None,
    dtype: object = "float32",
) -> Var:
    """A variable: by its type, or by its shape and dtype."""
    if type_annotation is not None and shape is not None:
        raise UnityError("relay.var takes a type or a shape, not both", here())
    if isinstance(type_annotation, CheckedType):
        return Var(name_hint, type_annotation.declared())
    if shape is not None:
        return Var(name_hint, tensor_type(shape, dtype))
    if isinstance(type_annotation, str):
        return Var(name_hint, tensor_type((), type_annotation))
    return Var(name_hint, type_annotation)


def const(value: object, dtype: object = None) -> Constant:
    """A constant; Python's numbers are int32 and float32 if no dtype is said.

    >>> const(1.0).data.dtype, const([1, 2], "int8").data.dtype
    (dtype('float32'), dtype('int8'))
    """
    array = np.asarray(value.data if isinstance(value, Constant) else value)
    wanted = None if dtype is None else dtype_of(dtype).numpy
    if wanted is None and not isinstance(value, np.ndarray | np.generic):
        wanted = np.dtype(_NARROW.get(array.dtype.name, array.dtype.name))
    made = np.array(array if wanted is None else array.astype(wanted), order="C")
    made.flags.writeable = False
    found = wrap(syntax.Constant(made, here()))
    assert isinstance(found, Constant)
    return found
