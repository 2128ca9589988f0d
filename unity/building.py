"""Programs built in Python, binding by binding: `GraphBuilder`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from unity import te
from unity.arguments import public_class
from unity.errors import UnityError
from unity.ir.convert import symbol_of, to_dim, to_prim_expr
from unity.ir.dims import Dim
from unity.ir.graph import Body, CallTir, Expr, FunctionRef, If, Tuple, TupleGet, Var, While
from unity.ir.module import IRModule
from unity.ir.prim_expr import SizeVar
from unity.ir.stmt import Buffer, PrimFunc
from unity.ir.types import ObjectType, TensorType
from unity.op import builder
from unity.op.call import call_op, is_expr
from unity.op.infer import infer_type
from unity.script.graph_names import as_type

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
    """

    def __init__(self, name: str = "main") -> None:
        self._name = name
        self._kernels: dict[str, PrimFunc] = {}
        self._builder = builder.GraphBuilder()
        self._outer: list[builder.GraphBuilder] = []

    def param(self, name: str, type: object) -> Var:
        """A parameter, in order.

        Args:
            name: Its name.
            type: Its type, ``f32[Tensor, n, 4]``.
        """
        return self._builder.param(name, as_type(type))

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
        return self._builder.emit(call)

    def emit(self, expr: Expr, name: str | None = None) -> Var:
        """Bind any expression.

        Args:
            expr: The expression; nested ones are bound before it.
            name: A name like the variable's.

        Raises:
            UnityError: It is ill-typed.
        """
        return self._builder.emit(expr, name)

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
                operands.append(self._builder.atom(value))
                given.append(self._placeholder(operands[-1]))
            else:
                given.append(value)
        made = fn(*given)
        results = [made] if isinstance(made, te.Tensor) else made
        if not isinstance(results, list | tuple) or not all(
            isinstance(r, te.Tensor) for r in results
        ):
            raise UnityError(
                f"emit_te: the function gave {made!r}", hint="a te.Tensor, or a tuple of them"
            )
        tensors = [t for t in given if isinstance(t, te.Tensor)]
        func = te.create_prim_func([*tensors, *results])
        kernel = self._builder.unique(name or results[0].name)
        self._kernels[kernel] = func
        for grown in (*self._outer, self._builder):
            grown.signatures[kernel] = ObjectType()
        types = tuple(_type_of(b) for b in func.buffers[len(tensors) :])
        rest = tuple(symbol_of(p) for p in func.params if isinstance(p, SizeVar))
        call = CallTir(FunctionRef(kernel), tuple(operands), types, rest)
        return self._builder.emit(call, kernel)

    def if_(self, condition: Expr, then: Suite, otherwise: Suite) -> Var:
        """One of two bodies, as a scalar bool says.

        Args:
            condition: The scalar.
            then: Builds the first on this builder, and gives its result.
            otherwise: Likewise the second; both are of one type.
        """
        where = self._builder.atom(condition)
        return self._builder.emit(If(where, self._body(then), self._body(otherwise)))

    def while_(self, init: Sequence[Expr], condition: Suite, body: Suite) -> tuple[Var, ...]:
        """A loop.

        Args:
            init: What the loop's values begin with.
            condition: Takes the values; builds and gives a scalar bool.
            body: Takes the values; builds and gives the next ones.

        Returns:
            The values at the end.
        """
        begin = tuple(self._builder.atom(e) for e in init)
        types = [infer_type(e, self._builder.signatures) for e in begin]
        states = tuple(self._builder.new_var("state", t) for t in types)
        loop = While(
            states, begin, self._body(lambda: condition(*states)),
            self._body(lambda: _as_tuple(body(*states))),
        )  # fmt: skip
        whole = self._builder.emit(loop)
        return tuple(self._builder.emit(TupleGet(whole, k)) for k in range(len(states)))

    @contextmanager
    def dataflow(self) -> Iterator[None]:
        """What is bound inside forms a dataflow block of its own."""
        with self._builder.dataflow_block():
            yield

    def finish(self, result: object) -> IRModule:
        """The module: the function, and the kernels it calls.

        Args:
            result: What the function returns: an expression, or a sequence of them.
        """
        found = result if is_expr(result) else _as_tuple(result)
        return IRModule({self._name: self._builder.finish(found), **self._kernels})

    def _body(self, suite: Suite) -> Body:
        """What a suite builds on this builder, as a body of its own."""
        outer = self._builder
        self._outer.append(outer)
        self._builder = outer.child()
        try:
            made = suite()
            return self._builder.body(made if is_expr(made) else _as_tuple(made))
        finally:
            self._builder = self._outer.pop()

    def _placeholder(self, e: Expr) -> te.Tensor:
        kind = infer_type(e, self._builder.signatures)
        name = e.name if isinstance(e, Var) else "x"
        if not isinstance(kind, TensorType) or not isinstance(kind.shape, tuple):
            raise UnityError(f"emit_te: the shape of {name} is not known: {kind}")
        if kind.dtype is None:
            raise UnityError(f"emit_te: the dtype of {name} is not known")
        return te.placeholder([to_prim_expr(d) for d in kind.shape], kind.dtype, name)


def _as_tuple(values: object) -> Tuple:
    """Several results as one.

    Raises:
        UnityError: They are no expressions.
    """
    found = values if isinstance(values, list | tuple) else [values]
    for value in found:
        if not is_expr(value):
            raise UnityError(f"a result is {value!r}", hint="expressions, as emit and op give them")
    return Tuple(tuple(v for v in found if is_expr(v)))


def _type_of(buffer: Buffer) -> TensorType:
    """What a kernel's output is to a graph.

    Raises:
        UnityError: It has a size that no graph can say.
    """
    dims: list[Dim] = []
    for size in buffer.shape:
        found = to_dim(size)
        if found is None:
            raise UnityError(f"{buffer.name} has a size that is no dim: {size}")
        dims.append(found)
    return TensorType(tuple(dims), buffer.dtype)
