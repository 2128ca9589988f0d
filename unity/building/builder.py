"""`GraphBuilder`: a graph function and its kernels, binding by binding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from unity import te
from unity.arguments import public_class, shown
from unity.errors import UnityError
from unity.ir.dims import Dim
from unity.ir.dtype import Array, DType
from unity.ir.graph import (
    Body,
    Call,
    CallTir,
    Expr,
    Function,
    FunctionRef,
    If,
    Scan,
    Tuple,
    TupleGet,
    Var,
    While,
)
from unity.ir.module import Definition, IRModule
from unity.ir.prim_expr import SizeVar
from unity.ir.signature import buffer_type, check_call
from unity.ir.stmt import Buffer, PrimFunc
from unity.ir.symbols.convert import symbol_of, to_prim_expr
from unity.ir.types import ObjectType, PrimType, TensorType, TupleType, Type
from unity.ir.visit import free_vars
from unity.op import builder
from unity.op.call import call_op, is_expr, prim_value, scalar
from unity.op.infer import infer_type, signatures_of
from unity.script.graph_names import as_type
from unity.script.program import ScriptFunction, ScriptPrimFunc, with_names

ExprLike: TypeAlias = "Expr | Array | float"
Suite: TypeAlias = Callable[..., "Expr | Sequence[Expr]"]


@public_class
class GraphBuilder:
    """Grows a graph function, and the kernels that it calls, to a module.

    Expressions are bound as they are emitted, and typed: a mistake is told by the call that makes
    it. What it gives are variables, to be operands of others.

    >>> from unity import te
    >>> from unity.script import Tensor, dim, f32, print_module
    >>> b = GraphBuilder()
    >>> x = b.param("x", f32[Tensor, dim("n"), 4])
    >>> y = b.op("nn.relu", x)
    >>> def doubled(a):
    ...     return te.compute(a.shape, lambda i, j: a[i, j] * 2.0, "doubled")
    >>> z = b.emit_te(doubled, y)
    >>> print(print_module(b.finish(z)), end="")
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(x: f32[Tensor, n, 4]) -> f32[Tensor, n, 4]:
        with R.dataflow():
            relu = R.nn.relu(x)
            doubled_1 = R.call_tir(doubled, (relu,), out=f32[Tensor, n, 4])
        return doubled_1
    <BLANKLINE>
    <BLANKLINE>
    @script.prim_func(attrs={"num_outputs": 1})
    def doubled(relu: f32[Buffer, n, 4], doubled_1: f32[Buffer, n, 4]) -> None:
        for i, j in T.grid(n, 4):
            with T.block("doubled"):
                vi, vj = T.axis.remap("SS", i, j)
                doubled_1[vi, vj] = relu[vi, vj] * 2.0

    Args:
        name: What the function is called.

    Raises:
        UnityError: The name is no identifier of the language.
    """

    def __init__(self, name: str = "main") -> None:
        self._name = builder.required_identifier("a function", name)
        self._callees: dict[str, Definition] = {}
        self._modules: list[tuple[tuple[tuple[str, Definition], ...], dict[str, str]]] = []
        self._builder = builder.GraphBuilder()
        self._outer: list[builder.GraphBuilder] = []
        self._seen: set[Var] = set()

    def param(self, name: str, type: object) -> Var:
        """A parameter, in order.

        Args:
            name: Its name.
            type: Its type, ``f32[Tensor, n, 4]``.
        """
        return self._made(self._builder.param(name, as_type(type)))

    def op(self, name: str, *args: object, **attrs: object) -> Var:
        """A call of an operator: ``b.op("nn.softmax", x, axis=-1)``.

        Args:
            name: The operator's.
            *args: Expressions; numbers are constants.
            **attrs: Its attributes.

        Raises:
            UnityError: There is none of that name, or the arguments don't fit it.
        """
        call = call_op(name, *args, span=None, signatures=self._builder.signatures, **attrs)
        return self._bound(call)

    def emit(self, expr: ExprLike, name: str | None = None) -> Var:
        """Bind any expression.

        Args:
            expr: The expression; nested ones are bound before it. A number or an array is a
                constant: integers int64, floats float32.
            name: A name like the variable's.

        Raises:
            UnityError: It is ill-typed, or has a variable that can't be seen here.
        """
        return self._bound(_given(expr), name)

    def match_cast(self, value: Expr, type: object, name: str | None = None) -> Var:
        """A value of which more is known: its type is asserted when the program comes there.

        Args:
            value: It.
            type: The type, ``f32[Tensor, n, 4]``; symbols that are new are known from here on.
            name: A name like the variable's.

        Raises:
            UnityError: The type is none, or the value has a variable that can't be seen here.
        """
        cast = self._builder.match_cast(self._checked(value), as_type(type), name)
        return self._made(cast)

    def call(
        self,
        function: ScriptFunction[..., object] | IRModule,
        *args: ExprLike,
        name: str | None = None,
    ) -> Var:
        """A call of a graph function, which the module then holds with all that it calls.

        Args:
            function: A decorated one, or what another builder finished: a module with one graph
                function, or one called ``main``.
            *args: Its arguments, in order; numbers are of its parameters' dtypes, arrays constants.
            name: A name like the variable's.

        Raises:
            UnityError: The module has no such function, or the arguments don't fit it.
        """
        if isinstance(function, IRModule):
            module, entry = function, _entry_of(function)
        else:
            module, entry = function.module(), function.name
        called = self._taken_over(module)[entry]
        kinds = [p.type for p in module.graph_functions()[entry].params]
        kinds += [ObjectType()] * (len(args) - len(kinds))
        try:
            given = [self._argument(a, t) for a, t in zip(args, kinds, strict=False)]
            return self._bound(Call(FunctionRef(called), tuple(given)), name)
        except UnityError as error:
            raise UnityError(f"call of {entry}: {error.message}", hint=error.hint) from None

    def emit_te(self, fn: Callable[..., object], *args: object, name: str | None = None) -> Var:
        """A call of a kernel that computes what a tensor expression says.

        Args:
            fn: Takes a `te.Tensor` for each expression among `args`, the others as they are, and
                gives a `te.Tensor` or several.
            *args: Expressions of known shape and dtype, and anything else.
            name: What the kernel is called; as the first result if not given.

        Raises:
            UnityError: An operand's type is not known, or `fn` gives something else.
        """
        operands: list[Expr] = []
        given: list[object] = []
        for value in args:
            if is_expr(value):
                operands.append(self._atom(value))
                given.append(self._placeholder(operands[-1]))
            else:
                given.append(value)
        made = fn(*given)
        results = [made] if isinstance(made, te.Tensor) else made
        if not isinstance(results, list | tuple) or not all(
            isinstance(r, te.Tensor) for r in results
        ):
            raise UnityError(
                f"emit_te: the function gave {shown(made)}", hint="a te.Tensor, or a tuple of them"
            )
        tensors = [t for t in given if isinstance(t, te.Tensor)]
        func = te.create_prim_func([*tensors, *results])
        types = tuple(graph_type(b) for b in func.buffers[len(tensors) :])
        rest = tuple(symbol_of(p) for p in func.params if isinstance(p, SizeVar))
        return self._called(func, name or results[0].name, tuple(operands), types, rest)

    def emit_tir(
        self,
        kernel: PrimFunc | ScriptPrimFunc[...],
        args: Sequence[Expr],
        out: object,
        name: str | None = None,
        inplace: Sequence[int] = (),
    ) -> Var:
        """A call of a kernel that exists: of `te.create_prim_func`, ``Schedule.kernel()`` ...

        Args:
            kernel: It, or a decorated one.
            args: Its inputs, in order.
            out: The type of its output, ``f32[Tensor, n, 4]``, or a sequence of such.
            name: What it is called; a decorated one by its own name.
            inplace: For each output the input whose memory it takes, or -1; the input keeps what
                it holds for all who read it elsewhere.

        Returns:
            The output; several as a tuple.

        Raises:
            UnityError: What is given does not fit its buffers.
        """
        operands = tuple(self._atom(e) for e in args)
        types = tuple(as_type(t) for t in (out if isinstance(out, list | tuple) else (out,)))
        called = name or "kernel"
        if isinstance(kernel, ScriptPrimFunc):
            called, kernel = name or kernel.name, kernel.func
        given = [infer_type(e, self._builder.signatures) for e in operands]
        try:
            known = check_call(called, kernel, given, types, inplace)
        except UnityError as error:
            raise UnityError(f"emit_tir: {error.message}", hint=error.hint) from None
        rest = tuple(
            known.get(symbol, symbol)
            for symbol in (symbol_of(p) for p in kernel.params if isinstance(p, SizeVar))
        )
        return self._called(kernel, called, operands, types, rest, tuple(inplace))

    def _called(
        self,
        kernel: PrimFunc,
        name: str,
        args: tuple[Expr, ...],
        out: tuple[Type, ...],
        sizes: tuple[Dim, ...],
        inplace: tuple[int, ...] = (),
    ) -> Var:
        called = next((n for n, func in self._callees.items() if func is kernel), None)
        if called is None:
            called = self._free(name)
            self._define(called, kernel, ObjectType())
        return self._bound(CallTir(FunctionRef(called), args, out, sizes, inplace), called)

    def _argument(self, value: ExprLike, kind: Type) -> Expr:
        """What a parameter of a type is given."""
        if isinstance(kind, PrimType) and isinstance(value, int | float):
            return prim_value(value, kind.dtype)
        atom = self._atom(_given(value, kind.dtype if isinstance(kind, TensorType) else None))
        is_tensor = isinstance(infer_type(atom, self._builder.signatures), TensorType)
        return self.op("item", atom) if isinstance(kind, PrimType) and is_tensor else atom

    def _define(self, name: str, definition: Definition, type: Type) -> None:
        """Something that this function calls."""
        self._callees[name] = definition
        for grown in (*self._outer, self._builder):
            grown.signatures[name] = type

    def _free(self, name: str) -> str:
        """A name of the module that nothing has."""
        found = self._builder.unique(name)
        return self._builder.unique(name) if found == self._name else found

    def _taken_over(self, module: IRModule) -> dict[str, str]:
        """What the functions of a module are called here; those of one called before, as then."""
        whole = tuple(module.functions.items())
        for other, names in self._modules:
            if len(other) == len(whole) and all(
                a == b and f is g for (a, f), (b, g) in zip(other, whole, strict=True)
            ):
                return names
        names = {name: self._free(name) for name, _ in whole}
        changed = {old: new for old, new in names.items() if old != new}
        for name, kind in signatures_of(module).items():
            found = module[name]
            if changed and isinstance(found, Function):
                found = with_names(found, changed)
            self._define(names[name], found, kind)
        self._modules.append((whole, names))
        return names

    def if_(self, condition: Expr, then: Suite, otherwise: Suite) -> Var:
        """One of two bodies, as a scalar bool says.

        Args:
            condition: The scalar.
            then: Builds the first on this builder, and gives its result.
            otherwise: Likewise the second. Where their types differ, what is known of the value
                is what both have in common.
        """
        where = self._atom(condition)
        return self._bound(If(where, self._body(then), self._body(otherwise)))

    def while_(self, init: Sequence[ExprLike], condition: Suite, body: Suite) -> tuple[Var, ...]:
        """A loop.

        Args:
            init: What the loop's values begin with; numbers and arrays are constants.
            condition: Takes the values; builds and gives a scalar bool.
            body: Takes the values; builds and gives the next ones.

        Returns:
            The values at the end.
        """
        begin, states = self._states(init)
        loop = While(
            states, begin, self._body(lambda: condition(*states), states),
            self._body(lambda: _as_tuple(body(*states)), states),
        )  # fmt: skip
        return self._parts(loop)

    def scan(
        self, init: Sequence[ExprLike], inputs: Sequence[Expr], body: Suite
    ) -> tuple[Var, ...]:
        """A loop over the first axis of tensors, which carries values and collects others.

        Args:
            init: What the values begin with; numbers and arrays are constants.
            inputs: Tensors whose first axes are equal: each step sees one slice of each.
            body: Takes the values, then the slices; gives the next values, then what is collected.

        Returns:
            The values at the end, then each thing that was collected, along a new first axis.

        Raises:
            UnityError: An input has no first axis, or the body gives less than the values.
        """
        begin, states = self._states(init)
        given = tuple(self._atom(e) for e in inputs)
        elements = tuple(self._builder.new_var("element", self._slice_of(e)) for e in given)
        seen = (*states, *elements)
        step = self._body(lambda: _as_tuple(body(*seen)), seen)
        return self._parts(Scan(states, begin, elements, given, step))

    def _states(self, init: Sequence[ExprLike]) -> tuple[tuple[Expr, ...], tuple[Var, ...]]:
        """What a loop's values begin with, and variables for them."""
        begin = tuple(self._atom(_given(e)) for e in init)
        types = [infer_type(e, self._builder.signatures) for e in begin]
        return begin, tuple(self._builder.new_var("state", t) for t in types)

    def _slice_of(self, e: Expr) -> TensorType:
        """The type of a part along the first axis."""
        kind = infer_type(e, self._builder.signatures)
        if not isinstance(kind, TensorType) or not isinstance(kind.shape, tuple) or not kind.shape:
            raise UnityError(
                f"scan: an input is {kind}", hint="a tensor of known rank, with an axis at least"
            )
        return TensorType(kind.shape[1:], kind.dtype)

    def _parts(self, loop: Expr) -> tuple[Var, ...]:
        """The values that a loop gives."""
        whole = self._bound(loop)
        fields = whole.type.fields if isinstance(whole.type, TupleType) else ()
        return tuple(self._bound(TupleGet(whole, k)) for k in range(len(fields)))

    @contextmanager
    def dataflow(self) -> Iterator[None]:
        """What is bound inside forms a dataflow block of its own."""
        with self._builder.dataflow_block():
            yield

    def finish(self, result: object) -> IRModule:
        """The module: the function, and what it calls.

        Args:
            result: What the function returns: an expression, or a sequence of such, which is a
                tuple.
        """
        found = self._checked(result if is_expr(result) else _as_tuple(result))
        return IRModule({self._name: self._builder.finish(found), **self._callees})

    def _body(self, suite: Suite, states: Sequence[Var] = ()) -> Body:
        """What a suite builds on this builder, as a body of its own, whose variables stay in it."""
        outer, seen = self._builder, self._seen
        self._outer.append(outer)
        self._builder, self._seen = outer.child(), {*seen, *states}
        try:
            made = suite()
            return self._builder.body(self._checked(made if is_expr(made) else _as_tuple(made)))
        finally:
            self._builder, self._seen = self._outer.pop(), seen

    def _made(self, var: Var) -> Var:
        """A variable, which can be seen from here on."""
        self._seen.add(var)
        return var

    def _bound(self, expr: Expr, name: str | None = None) -> Var:
        """A variable for an expression."""
        return self._made(self._builder.emit(self._checked(expr), name))

    def _atom(self, expr: Expr) -> Expr:
        """An expression that may be an operand: itself, or a variable for it."""
        atom = self._builder.atom(self._checked(expr))
        self._seen |= free_vars(atom)
        return atom

    def _checked(self, expr: Expr) -> Expr:
        """The expression, if what it names can be seen here.

        Raises:
            UnityError: It names a variable of another builder, or of a body that is closed.
        """
        for var in free_vars(expr):
            if var not in self._seen:
                raise UnityError(
                    f"{var.name!r} is no variable of {self._name!r}, or is bound in another body",
                    hint="operands are what this builder's param, op and emit gave: in this body, "
                    "or in one around it",
                )
        return expr

    def _placeholder(self, e: Expr) -> te.Tensor:
        kind = infer_type(e, self._builder.signatures)
        name = e.name if isinstance(e, Var) else "x"
        if not isinstance(kind, TensorType) or not isinstance(kind.shape, tuple):
            raise UnityError(f"emit_te: the shape of {name} is not known: {kind}")
        if kind.dtype is None:
            raise UnityError(f"emit_te: the dtype of {name} is not known")
        return te.placeholder([to_prim_expr(d) for d in kind.shape], kind.dtype, name)


def _given(value: ExprLike, dtype: DType | None = None) -> Expr:
    """An expression; a constant of an array, or of a number, which may have to be of a dtype."""
    return scalar(value, dtype) if isinstance(value, int | float | np.ndarray) else value


def _entry_of(module: IRModule) -> str:
    """Which function of a module is called.

    Raises:
        UnityError: That is not clear.
    """
    names = list(module.graph_functions())
    if "main" in names or len(names) == 1:
        return "main" if "main" in names else names[0]
    raise UnityError(
        f"call: the module has {len(names)} graph functions, and no 'main' among them",
        hint=f"it has {', '.join(names)}: call a decorated function"
        if names
        else "emit_tir calls a kernel",
    )


def _as_tuple(values: object) -> Tuple:
    """Several results as one; sequences among them are tuples.

    Raises:
        UnityError: They are no expressions.
    """
    found = values if isinstance(values, list | tuple) else [values]
    fields = [_as_tuple(v) if isinstance(v, list | tuple) else v for v in found]
    for value in fields:
        if not is_expr(value):
            raise UnityError(
                f"a result is {shown(value)}",
                hint="expressions, as emit and op give them; emit(1.0) is a constant",
            )
    return Tuple(tuple(v for v in fields if is_expr(v)))


def graph_type(buffer: Buffer) -> TensorType:
    """What a kernel's buffer is to a graph.

    Raises:
        UnityError: It has a size that no graph can say.
    """
    found = buffer_type(buffer)
    if not isinstance(found.shape, tuple):
        raise UnityError(f"{buffer.name} has a size that is no dim")
    return found
