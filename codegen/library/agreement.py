"""Library functions of users, checked when they are registered: three ways to the same numbers.

What the pattern means (interpreted), what the function is said to compute (its numpy oracle) and
what it does compute (the call, compiled) are compared on small random inputs.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence

import numpy as np

from unity.errors import UnityError
from unity.interpreter import interpret
from unity.ir.attrs import Attrs
from unity.ir.dims import Symbol, dim, evaluate, symbols_of
from unity.ir.dtype import Array
from unity.ir.graph import (
    Binding,
    BindingBlock,
    Body,
    CallLibrary,
    Constant,
    Expr,
    Function,
    TupleGet,
    Var,
    VarBinding,
)
from unity.ir.module import IRModule
from unity.ir.types import TensorType
from unity.machine.target import Target
from unity.op.call import call_op
from unity.op.infer import infer_type
from unity.runtime.executable import Executable
from unity.runtime.implementation import ImplementationError
from unity.transform import Context, backend_of
from unity.transform import pipeline as default_pipeline
from unity.transform.graph.resolve import FixedKernel, LibraryFunction
from unity.transform.instruments.numeric import difference
from unity.transform.pattern import (
    Any,
    Const,
    Either,
    Field,
    Graph,
    OpCall,
    Pattern,
    Through,
    match_at,
)

TRIALS = 6
RTOL = {"float16": 1e-2, "bfloat16": 5e-2, "float64": 1e-9}
"""How far results may differ, relative to the largest number; 1e-4 for other types."""


def check_function(function: LibraryFunction) -> None:
    """Compare the three.

    Raises:
        UnityError: Two differ.
    """
    kernel = function.kernel
    if function.pattern is None or not isinstance(kernel, FixedKernel):
        return
    types = kernel.types
    count = len(function.inputs)
    if len(types) != count + 1:
        return
    params = tuple(Var(n, t) for n, t in zip(function.inputs, types[:count], strict=True))
    meant = _Writer(params).function(function.pattern)
    if meant is None or not isinstance(meant.body.result, Var):
        return
    match = match_at(function.pattern, Graph.of(meant), meant.body.result)
    if match is None or any(match.captures.get(p.name) is not p for p in params):
        return
    attrs = function.attrs(match)
    called = _compiled(function, params, types[count], attrs)
    rng = np.random.default_rng(0)
    for _ in range(TRIALS):
        inputs = _inputs(types[:count], rng)
        with np.errstate(all="ignore"):
            expected = np.asarray(interpret(IRModule({"main": meant}), "main", inputs))
            said = np.asarray(function.oracle(*inputs, **attrs), expected.dtype)
            _compare(function, "its oracle and its pattern differ", expected, said, inputs)
            if called is not None:
                got = np.asarray(called(*(np.array(i) for i in inputs)))
                _compare(function, "what it computes and its oracle differ", said, got, inputs)


def _compare(
    function: LibraryFunction, what: str, expected: Array, got: Array, inputs: Sequence[Array]
) -> None:
    """Refuse results that differ where the first is finite.

    Raises:
        UnityError: They do.
    """
    rtol = RTOL.get(expected.dtype.name, 1e-4)
    if expected.shape == got.shape and expected.dtype.kind not in "biu":
        got = np.where(np.isfinite(expected), got, expected)
    wrong = difference(expected, got, rtol, rtol)
    if wrong is not None:
        shown = ", ".join(
            f"{name}: {a.dtype}{list(a.shape)}"
            for name, a in zip(function.inputs, inputs, strict=True)
        )
        raise UnityError(
            f"{function.name}: {what}, for {shown}: {wrong}",
            hint="register_library_function(..., check=False) takes it as it is",
        )


def _compiled(
    function: LibraryFunction, params: tuple[Var, ...], out: TensorType, attrs: Attrs
) -> Executable | None:
    """The call as a program; None where the library is not there, which a compile will tell."""
    from unity.codegen.assemble import assemble
    from unity.codegen.llvm import default_folder
    from unity.codegen.lower import lower

    if function.missing() is not None:
        return None
    result = Var("result", out)
    call = VarBinding(result, CallLibrary(function.name, params, (out,), attrs))
    body = Body((BindingBlock((call,), dataflow=True),), result)
    module = IRModule({"main": Function(params, body, out)})
    target: Target = backend_of("cpu").machine(1)
    passes = default_pipeline(target.kind)
    try:
        return assemble(lower(module, passes, Context(target), default_folder()))
    except ImplementationError:
        return None


class _Writer:
    """Carries the calls of a program that a pattern matches."""

    def __init__(self, params: Sequence[Var]) -> None:
        self.params = tuple(params)
        self.given = {p.name: p for p in params}
        self.bindings: list[Binding] = []

    def function(self, pattern: Pattern) -> Function | None:
        """The program; None if none can be told from the pattern."""
        try:
            result = self.write(pattern)
        except UnityError:  # its types don't fit
            return None
        if not isinstance(result, Var) or not self.bindings:
            return None
        body = Body((BindingBlock(tuple(self.bindings), dataflow=True),), result)
        return Function(self.params, body, result.type)

    def write(self, p: Pattern) -> Expr | None:
        """What computes a part."""
        if p.name in self.given:
            return self.given[p.name]
        match p:
            case Any():
                return None
            case Const(value):
                return None if value is None else self.constant(value)
            case OpCall(ops, args, attrs):
                return self.call(ops[0], args, attrs)
            case Field(of_tuple, index):
                whole = self.write(of_tuple)
                return None if whole is None else self.bind(TupleGet(whole, index))
            case Either(options):
                return next((e for o in options if (e := self.write(o)) is not None), None)
            case Through(inner=inner):
                return self.write(inner)

    def call(
        self, name: str, args: Sequence[Pattern] | None, attrs: Mapping[str, object]
    ) -> Expr | None:
        operands = [self.write(a) for a in args or ()]
        if not operands or any(o is None for o in operands) or any(map(callable, attrs.values())):
            return None
        named: dict[str, typing.Any] = dict(attrs)  # each op has its own
        return self.bind(call_op(name, *operands, **named))

    def bind(self, value: Expr) -> Var:
        var = Var(f"v{len(self.bindings)}", infer_type(value, {}, dim))
        self.bindings.append(VarBinding(var, value))
        return var

    def constant(self, value: float) -> Constant:
        first = self.params[0].type
        kind = first.dtype if isinstance(first, TensorType) else None
        return Constant(np.array(value, np.float32 if kind is None else kind.numpy))


def _inputs(types: Sequence[TensorType], rng: np.random.Generator) -> list[Array]:
    """Small arrays of some types, whose symbols are drawn anew."""
    sizes: dict[Symbol, int] = {}
    for t in types:
        for symbol in symbols_of(*(t.shape if isinstance(t.shape, tuple) else ())):
            facts = symbol.facts
            size = -(-max(1, facts.min) // facts.multiple_of) * facts.multiple_of
            size += facts.multiple_of * int(rng.integers(0, 6))
            sizes.setdefault(symbol, size if facts.max is None else min(size, facts.max))
    found: list[Array] = []
    positive = rng.random() < 0.5
    for t in types:
        assert isinstance(t.shape, tuple)
        assert t.dtype is not None
        shape = [evaluate(d, sizes) for d in t.shape]
        if t.dtype.is_float:
            drawn = rng.standard_normal(shape)
            values = np.asarray(np.abs(drawn) + 0.1 if positive else drawn)
        else:
            values = np.asarray(rng.integers(0, 2 if t.dtype.kind == "bool" else 5, shape))
        found.append(values.astype(t.dtype.numpy))
    return found
