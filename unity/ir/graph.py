"""Graph functions: the node list of the high level, in A-normal form.

A `Function` has a `Body`: blocks of bindings, then a result. In A-normal form every argument is an
atom (`Atom`), every binding's right side is one expression over atoms, and each `Var` carries the
type of what it is bound to. Dims in types, shape values and attributes name symbols by value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from unity.errors import Span
from unity.ir.attrs import NO_ATTRS, Attrs
from unity.ir.dims import Dim
from unity.ir.display import Displayed
from unity.ir.dtype import Array, DType
from unity.ir.types import Type


@dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A value bound once: a parameter, a binding's left side, a loop's state. Equal by identity."""

    name: str
    type: Type
    span: Span | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """An array known at compile time (never written to); equal by identity, compared structurally.

    `name` is where it came from (an initializer's name) and takes no part in equality.
    """

    data: Array
    name: str | None = None
    span: Span | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ShapeValue:
    """A tuple of dims as a value."""

    dims: tuple[Dim, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PrimValue:
    """A scalar as a value; an integer one may be any dim."""

    value: Dim | float | bool
    dtype: DType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A text or a dtype as a value; its type is `ObjectType`. Functions of the host take such."""

    value: str | DType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FunctionRef:
    """A function of the module, by name."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Op:
    """An operator, by name; its rules are rows of `unity.op`."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Tuple:
    """Several values as one."""

    fields: tuple[Expr, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TupleGet:
    """One field of a tuple."""

    value: Expr
    index: int
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operator, of a function of the module, or of a closure held by a `Var`."""

    callee: Op | FunctionRef | Var
    args: tuple[Expr, ...]
    attrs: Attrs = NO_ATTRS
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CallTir:
    """Destination-passing call of a prim func: the compiler allocates what `out` says.

    `out` are the types of the outputs (one: the value is a tensor; several: a tuple); `inplace[i]`
    is the index in `args` that output i aliases, or -1; `sym_args` are extra dims for the kernel's
    trailing scalar parameters, those that no buffer shape gives.
    """

    callee: FunctionRef
    args: tuple[Expr, ...]
    out: tuple[Type, ...]
    sym_args: tuple[Dim, ...] = ()
    inplace: tuple[int, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CallLibrary:
    """Destination-passing call of a C-ABI function through a registered descriptor."""

    symbol: str
    args: tuple[Expr, ...]
    out: tuple[Type, ...]
    attrs: Attrs = NO_ATTRS
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CallPython:
    """Destination-passing call of a Python function on arrays, ``fn(*inputs, *outputs)``."""

    function: Callable[..., None]
    args: tuple[Expr, ...]
    out: tuple[Type, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CallEngine:
    """A call of a graph function (`subgraph`) that an external runtime compiles and runs."""

    engine: str
    subgraph: FunctionRef
    args: tuple[Expr, ...]
    out: tuple[Type, ...]
    attrs: Attrs = NO_ATTRS
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class If:
    """Both bodies give the same type; `condition` is a scalar bool tensor or a bool prim value."""

    condition: Expr
    then: Body
    orelse: Body
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class While:
    """A loop over state: `vars` start as `init`, `body` gives their next values (a tuple).

    The value is the tuple of the vars' last values. `vars` are in scope in `condition` and `body`.
    """

    vars: tuple[Var, ...]
    init: tuple[Expr, ...]
    condition: Body
    body: Body
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Scan:
    """A loop over the leading axis of `inputs`, carrying `state` and stacking what each step gives.

    `body` sees `state` and `elements` (one slice of each input) and gives a tuple: the next states,
    then the step's outputs. The value is a tuple: the last states, then each output stacked.
    """

    state: tuple[Var, ...]
    init: tuple[Expr, ...]
    elements: tuple[Var, ...]
    inputs: tuple[Expr, ...]
    body: Body
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class VarBinding:
    """``var = value``."""

    var: Var
    value: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class MatchCast:
    """``var = match_cast(value, type)``: asserts `type` at run time and binds its new symbols."""

    var: Var
    value: Expr
    type: Type
    span: Span | None = field(default=None, compare=False, repr=False)


Binding: TypeAlias = VarBinding | MatchCast


@dataclass(frozen=True, slots=True)
class BindingBlock:
    """A stretch of bindings; a dataflow block is pure and the unit of graph rewriting."""

    bindings: tuple[Binding, ...]
    dataflow: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """Blocks of bindings, then an atom as the result."""

    blocks: tuple[BindingBlock, ...]
    result: Expr


@dataclass(frozen=True, slots=True)
class Function(Displayed):
    """A graph function; as an expression, a closure over the vars of its surroundings.

    `result` is the declared type of the body's result. `attrs` may hold ``primitive`` (made by
    fusion), ``engine``, ``source`` (the node it was imported from). Its name is its key in
    the module.
    """

    params: tuple[Var, ...]
    body: Body
    result: Type
    pure: bool = True
    attrs: Attrs = NO_ATTRS
    span: Span | None = field(default=None, compare=False, repr=False)


Atom: TypeAlias = Var | Constant | ShapeValue | PrimValue | Literal | FunctionRef | Op
Expr: TypeAlias = (
    Var
    | Constant
    | ShapeValue
    | PrimValue
    | Literal
    | FunctionRef
    | Op
    | Tuple
    | TupleGet
    | Call
    | CallTir
    | CallLibrary
    | CallPython
    | CallEngine
    | If
    | While
    | Scan
    | Function
)
