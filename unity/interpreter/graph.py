"""Graph functions, run binding by binding on numpy arrays.

Every bound value is checked against the type of its var, so a wrong type rule or a pass that breaks
types stops here, and the symbols of data-dependent results get their values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias, assert_never

import numpy as np

from unity.errors import Span, UnityError, UnsupportedError, place_of
from unity.interpreter.kernel import Kernel
from unity.interpreter.memory import MEMORY_OPS, ints
from unity.interpreter.sizes import Sizes
from unity.interpreter.storage import fresh
from unity.interpreter.values import (
    Closure,
    External,
    Value,
    as_given,
    as_value,
    bind,
    bind_all,
    bind_result,
    conform,
    from_host,
    kind_of,
    reference_arg,
    to_host,
)
from unity.ir.aliases import aliases_of
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.dims import SymDim
from unity.ir.dtype import Array
from unity.ir.graph import (
    Binding,
    Body,
    Call,
    CallEngine,
    CallLibrary,
    CallPython,
    CallTir,
    Constant,
    Expr,
    Function,
    FunctionRef,
    If,
    Literal,
    MatchCast,
    Op,
    PrimValue,
    Scan,
    ShapeValue,
    Tuple,
    TupleGet,
    Var,
    While,
)
from unity.ir.lattice import atom_type
from unity.ir.module import ExternFunc, IRModule
from unity.ir.prim_expr import PrimVar, SizeVar
from unity.ir.signature import scalar_params, size_params
from unity.ir.stmt import PrimFunc
from unity.ir.types import Shape, ShapeType, TensorType, TupleType, Type
from unity.op.effects import ASSERT, PRINT
from unity.op.table import OPS
from unity.runtime.bytecode.effects import assertion_error, print_values
from unity.runtime.hosts.registered import registered_host

Oracle: TypeAlias = Callable[..., object]
"""A C-ABI function's meaning: ``fn(*inputs, *outputs)`` on arrays."""


def interpret(
    module: IRModule,
    name: str,
    args: Sequence[object],
    libraries: Mapping[str, Oracle] | None = None,
) -> Value:
    """Run a graph function of a module.

    Args:
        module: The module.
        name: The function's name.
        args: Arrays (or tuples of them, shapes as tuples of ints, numbers), one per parameter.
        libraries: What the symbols of `CallLibrary` mean, and those of extern functions, in place
            of what is registered (`unity.register_function`).

    Returns:
        An array, or a tuple.

    Raises:
        UnityError: The arguments do not fit, or the program fails: an access out of bounds, an
            assertion, a type that a value does not have.
    """
    return Interpreter(module, libraries).call(name, args)


class Interpreter:
    """A module and its compiled kernels, to be called many times."""

    def __init__(self, module: IRModule, libraries: Mapping[str, Oracle] | None = None) -> None:
        self.module = module
        self._libraries = dict(libraries or {})
        self._kernels: dict[str, Kernel] = {}

    def call(self, name: str, args: Sequence[object]) -> Value:
        """Run a function of the module; see `interpret`."""
        function = self.module[name]
        if not isinstance(function, Function):
            raise UnityError(f"{name} is no graph function", hint="run_prim_func runs a prim func")
        given_away = set(aliases_of(function).values())
        if len(args) != len(function.params):
            raise UnityError(f"{name} takes {len(function.params)} arguments, got {len(args)}")
        given = [as_given(q.type, a) for q, a in zip(function.params, args, strict=True)]
        values = [_own(v) if i in given_away else _protected(v) for i, v in enumerate(given)]
        return self._apply(Closure(name, function, {}, Sizes()), values, None)

    def kernel(self, name: str) -> Kernel:
        """A prim func of the module, compiled once."""
        if name not in self._kernels:
            func = self.module[name]
            if not isinstance(func, PrimFunc):
                raise UnityError(f"{name} is no prim func")
            self._kernels[name] = Kernel(func, name)
        return self._kernels[name]

    def _apply(self, closure: Closure, args: Sequence[Value], span: Span | None) -> Value:
        function, name = closure.function, closure.name
        if len(args) != len(function.params):
            raise UnityError(
                f"{name} takes {len(function.params)} arguments, got {len(args)}", span
            )
        sizes = closure.sizes.child()
        rows = [
            (param.type, value, f"{name}: argument {i} ({param.name!r})")
            for i, (param, value) in enumerate(zip(function.params, args, strict=True))
        ]
        bind_all(rows, sizes, span)
        env = {**closure.env, **dict(zip(function.params, args, strict=True))}
        result = conform(function.result, _Frame(self, name, env, sizes).body(function.body))
        bind_result(function.result, result, sizes.child(), f"{name}: the result", function.span)
        return result

    def run_destination_passing(
        self,
        symbol: str,
        function: Callable[..., object],
        inputs: Sequence[Value],
        outputs: Sequence[Array],
    ) -> None:
        """Call an opaque function on arrays."""
        arrays = [v for v in inputs if isinstance(v, np.ndarray)]
        if len(arrays) != len(inputs):
            raise UnityError(f"{symbol} takes tensors only")
        function(*arrays, *outputs)

    def host(self, symbol: str) -> Callable[..., object]:
        """What an external function's symbol means: given by the caller, or registered."""
        return self._libraries[symbol] if symbol in self._libraries else registered_host(symbol)

    def oracle(self, symbol: str, span: Span | None) -> Oracle:
        """What a C symbol means."""
        found = self._libraries.get(symbol)
        if found is None:
            raise UnsupportedError(
                "the interpreter can't call C functions",
                [symbol],
                span,
                "pass its meaning: interpret(..., libraries={symbol: fn})",
            )
        return found


class _Frame:
    """One activation: the values of vars and symbols in scope."""

    def __init__(
        self, machine: Interpreter, name: str, env: dict[Var, Value], sizes: Sizes
    ) -> None:
        self.machine = machine
        self.name = name
        self.env = env
        self.sizes = sizes

    def body(self, body: Body) -> Value:
        """Run the bindings, then give the result; symbols bound inside end here."""
        inner = _Frame(self.machine, self.name, self.env, self.sizes.child())
        for block in body.blocks:
            for binding in block.bindings:
                inner.binding(binding)
        return inner.eval(body.result)

    def binding(self, binding: Binding) -> None:
        """Run one binding and check its value against its type."""
        var, where = binding.var, f"{self.name}: {binding.var.name!r}"
        value = conform(var.type, self.eval(binding.value))
        if isinstance(binding, MatchCast):
            try:
                bind(binding.type, value, self.sizes, where, binding.span)
            except UnityError as error:
                rule = binding.span.rule if binding.span is not None else ""
                told = (
                    f"{rule}{self.sizes.told((*_dims_of(binding.value), *_dims_of(binding.type)))}"
                )
                raise UnityError(told, binding.span) if rule else error from None
        bind(var.type, value, self.sizes, where, binding.span)
        self.env[var] = value

    def eval(self, e: Expr) -> Value:
        """The value of an expression."""
        match e:
            case Var():
                if e not in self.env:
                    raise UnityError(f"{self.name}: {e.name!r} is used before it is bound", e.span)
                return self.env[e]
            case Constant(data):
                return _protected(np.asarray(data, order="C"))  # flat kernels read no gaps
            case ShapeValue(dims):
                return tuple(self.sizes.evaluate(d, e.span) for d in dims)
            case PrimValue(value, kind):
                if isinstance(value, bool | float):
                    return value
                number = self.sizes.evaluate(value, e.span)
                return float(number) if kind.is_float else number
            case Literal(value):
                return value if isinstance(value, str) else value.numpy
            case FunctionRef(name):
                return self._function(name, e.span)
            case Op(name):
                raise UnityError(f"the operator {name!r} is no value: call it", e.span)
            case Tuple(fields):
                return tuple(self.eval(f) for f in fields)
            case TupleGet(value, index):
                whole = self.eval(value)
                if not isinstance(whole, tuple) or not 0 <= index < len(whole):
                    raise UnityError(f"no field {index} in {kind_of(whole)}", e.span)
                return whole[index]
            case Call():
                return self._call(e)
            case CallTir():
                return self._call_tir(e)
            case CallLibrary(symbol):
                oracle = self.machine.oracle(symbol, e.span)
                given = {"outputs": len(e.out)} if len(e.out) > 1 else {}
                return self._opaque(symbol, partial(oracle, **e.attrs, **given), e)
            case CallPython(function):
                return self._opaque(getattr(function, "__name__", "a function"), function, e)
            case CallEngine(_, subgraph, args):
                return self._invoke(self._function(subgraph.name, e.span), args, e.span)
            case If(condition, then, orelse):
                return self.body(then if self._truth(self.eval(condition)) else orelse)
            case While():
                return self._while(e)
            case Scan():
                return self._scan(e)
            case Function():
                return Closure("a closure", e, dict(self.env), self.sizes.child())
            case _:
                assert_never(e)

    def _function(self, name: str, span: Span | None) -> Value:
        definition = self.machine.module[name]
        match definition:
            case Function():
                return Closure(name, definition, {}, Sizes())
            case ExternFunc():
                return External(definition, self.machine.host(definition.symbol))
            case PrimFunc():
                raise UnityError(f"{name} is a prim func: call it by call_tir", span)
            case _:
                assert_never(definition)

    def _invoke(self, function: Value, args: Sequence[Expr], span: Span | None) -> Value:
        if isinstance(function, External):
            return self._external(function, [self.eval(a) for a in args], span)
        if not isinstance(function, Closure):
            raise UnityError(f"{kind_of(function)} can't be called", span)
        return self.machine._apply(function, [self.eval(a) for a in args], span)

    def _external(self, external: External, args: list[Value], span: Span | None) -> Value:
        """A call of a function of the host, by the types that are declared of it."""
        symbol, kind = external.extern.symbol, external.extern.type
        if len(args) != len(kind.params):
            raise UnityError(f"{symbol} takes {len(kind.params)} arguments, got {len(args)}", span)
        sizes = Sizes()
        rows = [
            (param, value, f"call of {symbol}: argument {i}")
            for i, (param, value) in enumerate(zip(kind.params, args, strict=True))
        ]
        bind_all(rows, sizes, span)
        result = conform(kind.result, from_host(external.function(*map(to_host, args))))
        bind(kind.result, result, sizes, f"the result of {symbol}", span)
        return result

    def _call(self, e: Call) -> Value:
        if not isinstance(e.callee, Op):
            return self._invoke(self.eval(e.callee), e.args, e.span)
        name = e.callee.name
        if name == "memory.call_kernel":
            return self._call_kernel(e)
        args, attrs = [self.eval(a) for a in e.args], self._attrs(e.attrs)
        if name in (PRINT, ASSERT):
            return self._effect(args, str(attrs["format"]), e.span)
        memory = MEMORY_OPS.get(name)
        if memory is not None:
            return memory(args, attrs)
        row = OPS.get(name)
        if row is None:
            raise UnityError(f"there is no operator {name!r}", e.span)
        if row.reference is None:
            raise UnsupportedError("an operator has no reference", [name], e.span)
        given = [reference_arg(arg, name, e.span) for arg in args]
        with np.errstate(all="ignore"):
            return as_value(row.reference(given, attrs))

    def _effect(self, args: list[Value], text: str, span: Span | None) -> Value:
        """A print or an assert."""
        *condition, values = args
        told = [to_host(v) for v in values] if isinstance(values, tuple) else [to_host(values)]
        if not condition:
            print_values(text, told)
        elif not self._truth(condition[0]):
            raise assertion_error(place_of(span), text, told)
        return ()

    def _attrs(self, attrs: Attrs) -> Attrs:
        """The attributes with the numbers that their dims stand for."""
        return Attrs({name: self._attr(value) for name, value in attrs.items()})

    def _attr(self, value: AttrValue) -> AttrValue:
        if isinstance(value, SymDim):
            return self.sizes.evaluate(value)
        if isinstance(value, tuple):
            return tuple(self._attr(v) for v in value)
        return value

    def _call_tir(self, e: CallTir) -> Value:
        kernel = self.machine.kernel(e.callee.name)
        arrays = [self._tensor(a) for a in e.args]
        aliases = e.inplace or (-1,) * len(e.out)
        for alias in aliases:
            if alias >= 0:  # whoever else reads it still sees what it held
                arrays[alias] = arrays[alias].copy()
        outputs = [
            arrays[alias] if alias >= 0 else self._destination(t, e.span)
            for t, alias in zip(e.out, aliases, strict=True)
        ]
        made = [out for out, alias in zip(outputs, aliases, strict=True) if alias < 0]
        given = [self.sizes.evaluate(d, e.span) for d in e.sym_args]
        explicit = kernel.explicit_params()
        if len(given) != len(explicit):
            raise UnityError(
                f"{e.callee.name} takes {len(explicit)} scalars, got {len(given)}", e.span
            )
        pairs = list(zip(explicit, given, strict=True))
        sizes = {p: n for p, n in pairs if isinstance(p, SizeVar)}
        try:
            kernel([*arrays, *made], sizes, [n for p, n in pairs if isinstance(p, PrimVar)])
        except UnityError as error:
            raise UnityError(error.message, error.span or e.span, error.hint) from None
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _call_kernel(self, e: Call) -> Value:
        callee, arguments, shape = e.args[0], self.eval(e.args[1]), self.eval(e.args[2])
        if not isinstance(callee, FunctionRef) or not isinstance(arguments, tuple):
            raise UnityError("memory.call_kernel takes a function, a tuple and a shape", e.span)
        definition = self.machine.module[callee.name]
        if isinstance(definition, Function):
            return self._run_engine(callee.name, definition, arguments, e.span)
        kernel = self.machine.kernel(callee.name)
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        names, values = size_params(kernel.func), ints(shape)
        wanted = len(names) + len(scalar_params(kernel.func))
        if len(values) != wanted or len(arrays) != len(kernel.func.buffers):
            raise UnityError(
                f"{callee.name} takes {len(kernel.func.buffers)} buffers and {wanted} sizes, "
                f"got {len(arrays)} and {len(values)}",
                e.span,
            )
        kernel(arrays, dict(zip(names, values, strict=False)), values[len(names) :])
        return ()

    def _run_engine(
        self, name: str, function: Function, arguments: tuple[Value, ...], span: Span | None
    ) -> Value:
        """What an engine computes, by the function it is given; written to the destinations."""
        count = len(function.params)
        closure = Closure(name, function, {}, Sizes())
        result = self.machine._apply(closure, list(arguments[:count]), span)
        results = result if isinstance(result, tuple) else (result,)
        for target, value in zip(arguments[count:], results, strict=True):
            assert isinstance(target, np.ndarray)
            np.copyto(target, np.asarray(value))
        return ()

    def _opaque(
        self, symbol: str, function: Callable[..., object], e: CallLibrary | CallPython
    ) -> Value:
        outputs = [self._destination(t, e.span) for t in e.out]
        inputs = [self.eval(a) for a in e.args]
        self.machine.run_destination_passing(symbol, function, inputs, outputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _destination(self, t: Type, span: Span | None) -> Array:
        if not isinstance(t, TensorType) or not isinstance(t.shape, tuple) or t.dtype is None:
            raise UnityError(f"can't allocate an output of type {t}", span)
        return fresh([self.sizes.evaluate(d, span) for d in t.shape], t.dtype)

    def _tensor(self, e: Expr) -> Array:
        value = self.eval(e)
        if not isinstance(value, np.ndarray):
            raise UnityError(f"a kernel takes tensors, got {kind_of(value)}", e.span)
        return value

    def _truth(self, value: Value) -> bool:
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return bool(value)
        if isinstance(value, bool):
            return value
        raise UnityError(f"{self.name}: a condition must be a scalar bool, got {kind_of(value)}")

    def _while(self, e: While) -> Value:
        state = tuple(_own(self.eval(i)) for i in e.init)
        while True:
            step = self._step(e.vars, state, e.span)
            if not self._truth(step.body(e.condition)):
                return state
            following = step.body(e.body)
            if not isinstance(following, tuple):
                raise UnityError("a while body must give a tuple of its next state", e.span)
            state = tuple(map(_own, following))

    def _step(self, names: Sequence[Var], values: Sequence[Value], span: Span | None) -> _Frame:
        """A frame for one turn of a loop: symbols in the state's types are bound anew each turn."""
        sizes = self.sizes.child()
        rows = [(v.type, x, f"{self.name}: {v.name!r}") for v, x in zip(names, values, strict=True)]
        bind_all(rows, sizes, span)
        env = {**self.env, **dict(zip(names, values, strict=True))}
        return _Frame(self.machine, self.name, env, sizes)

    def _scan(self, e: Scan) -> Value:
        state = [_own(self.eval(i)) for i in e.init]
        inputs = [self._tensor(i) for i in e.inputs]
        lengths = {len(i) for i in inputs}
        if len(lengths) != 1:
            raise UnityError(f"scan's inputs have different lengths: {sorted(lengths)}", e.span)
        steps: list[tuple[Value, ...]] = []
        for t in range(lengths.pop()):
            slices = [np.asarray(i[t]) for i in inputs]
            result = self._step((*e.state, *e.elements), (*state, *slices), e.span).body(e.body)
            assert isinstance(result, tuple)
            state = list(map(_own, result[: len(state)]))
            steps.append(result[len(state) :])
        return (*state, *self._stack(steps, e))

    def _stack(self, steps: list[tuple[Value, ...]], e: Scan) -> tuple[Value, ...]:
        if steps:
            return tuple(
                np.stack([_copied(v) for v in column]) for column in zip(*steps, strict=True)
            )
        found = atom_type(e.body.result)
        assert isinstance(found, TupleType)
        empty: list[Value] = []
        for t in found.fields[len(e.state) :]:
            if not isinstance(t, TensorType) or not isinstance(t.shape, tuple) or t.dtype is None:
                raise UnityError("scan over nothing needs its outputs' shapes", e.span)
            shape = [self.sizes.evaluate(d, e.span) for d in t.shape]
            empty.append(np.zeros((0, *shape), t.dtype.numpy))
        return tuple(empty)


def _copied(value: Value) -> Array:
    assert isinstance(value, np.ndarray)
    return value


def _own(value: Value) -> Value:
    """Loop state is a copy: the memory that a body computes in may be reused in the next round."""
    if isinstance(value, np.ndarray):
        return np.array(value)
    return tuple(_own(v) for v in value) if isinstance(value, tuple) else value


def _protected(value: Value) -> Value:
    """Arrays the program does not own (constants, arguments) can't be written to."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    return tuple(_protected(v) for v in value) if isinstance(value, tuple) else value


def _dims_of(e: Expr | Type) -> Shape:
    """The sizes that a shape is made of, or a type of shapes."""
    dims = e.dims if isinstance(e, ShapeValue | ShapeType) else ()
    return dims if isinstance(dims, tuple) else ()
