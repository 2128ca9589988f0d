"""Graph functions as Python source, one line a binding.

Types are written where they can't be inferred: on parameters, results, and bindings whose type is
not the one that the parser would find.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from unity.errors import UnityError
from unity.ir.attrs import NO_ATTRS
from unity.ir.dims import Dim, Symbol, dim
from unity.ir.dtype import DType, dtype
from unity.ir.graph import (
    Binding,
    BindingBlock,
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
    VarBinding,
    While,
)
from unity.ir.types import TensorType, Type
from unity.op.effects import ASSERT, PRINT
from unity.op.infer import infer_type
from unity.op.registry import OpDef, Param, attr_value
from unity.op.table import OPS

from .constants import ConstantPool, bare_number
from .lines import Lines
from .literals import (
    SymbolNames,
    attr_text,
    attrs_text,
    dim_in,
    float_text,
    string_text,
    tuple_text,
)
from .names import Names
from .types import type_text


def _unknown(hint: str) -> Symbol:
    """The parser names fresh symbols as it likes, so a type with one is always written."""
    return dim(f"unknown_{hint}")


class GraphText:
    """Prints the bindings of one graph function.

    Args:
        lines: Where to.
        names: Names of its variables.
        symbols: How the text calls symbols, where not by their own name.
        pool: Takes the large constants.
        signatures: The types of the module's functions.
    """

    def __init__(
        self,
        lines: Lines,
        names: Names,
        symbols: SymbolNames,
        pool: ConstantPool,
        signatures: Mapping[str, Type],
    ) -> None:
        self.lines = lines
        self.names = names
        self.symbols = symbols
        self.pool = pool
        self.signatures = signatures

    def function(self, name: str, f: Function) -> None:
        """A definition with its decorator."""
        options = [] if f.pure else ["pure=False"]
        if f.attrs:
            options.append(f"attrs={attrs_text(f.attrs, self.symbols)}")
        self.lines.add(f"@script.function({', '.join(options)})" if options else "@script.function")
        params = ", ".join(f"{self.names.define(p, p.name)}: {self.type(p.type)}" for p in f.params)
        with self.lines.block(f"def {name}({params}) -> {self.type(f.result)}:"):
            self.bindings(f.body)
            self.lines.add(f"return {self.expr(f.body.result)}")

    def bindings(self, body: Body) -> None:
        """All bindings of a body; its result is the caller's to print."""
        for block in body.blocks:
            self._binding_block(block)

    def _binding_block(self, block: BindingBlock) -> None:
        if not block.dataflow:
            for binding in block.bindings:
                self._binding(binding)
            return
        with self.lines.block("with R.dataflow():"):
            for binding in block.bindings:
                self._binding(binding)

    def _binding(self, b: Binding) -> None:
        match b:
            case MatchCast(var, value, asserted):
                text = f"R.match_cast({self.expr(value)}, {self.type(asserted)})"
                self.lines.add(f"{self._target(var, asserted)} = {text}")
            case VarBinding(var, If() as value):
                self._if(var, value)
            case VarBinding(var, While() as value):
                self._while(var, value)
            case VarBinding(var, Scan() as value):
                self._scan(var, value)
            case VarBinding(var, Function() as value):
                name = self.names.define(var, var.name)
                with self.names.scope():
                    self.function(name, value)
            case VarBinding(var, value):
                text = self.expr(value)
                # a function's name alone would be an alias, not a binding
                found = None if isinstance(value, FunctionRef) else self._inferred(value)
                self.lines.add(f"{self._target(var, found)} = {text}")
            case _:
                assert_never(b)

    def _target(self, var: Var, inferred: Type | None) -> str:
        """The left side: the name, with the type where it is not the inferred one."""
        name = self.names.define_once(var, var.name)
        return name if var.type == inferred else f"{name}: {self.type(var.type)}"

    def _inferred(self, value: Expr) -> Type | None:
        try:
            return infer_type(value, self.signatures, _unknown)
        except UnityError:
            return None

    def _if(self, var: Var, e: If) -> None:
        """Both branches end by giving the name a value; the parser joins them to one binding."""
        name = self.names.define(var, var.name)
        declared = "" if var.type == self._inferred(e) else f": {self.type(var.type)}"
        with self.lines.block(f"if {self.expr(e.condition)}:"):
            self._branch(name, declared, e.then)
        with self.lines.block("else:"):
            self._branch(name, "", e.orelse)

    def _branch(self, name: str, declared: str, body: Body) -> None:
        """The parser takes a last ``name = atom`` as the result itself and binds nothing."""
        # no scope of names: one that both branches used would be joined too
        if not declared and self._ends_with_result(body):
            assert isinstance(body.result, Var)
            self.names.alias(body.result, name)
            self.bindings(body)
        else:
            self.bindings(body)
            self.lines.add(f"{name}{declared} = {self.expr(body.result)}")

    def _ends_with_result(self, body: Body) -> bool:
        """Whether the last binding, which needs no type and binds no atom, is the result."""
        last = body.blocks[-1].bindings[-1:] if body.blocks else ()
        match last:
            case (VarBinding(var, value),):
                plain = isinstance(value, Call | CallTir | CallLibrary | CallPython | CallEngine)
                return plain and var is body.result and var.type == self._inferred(value)
            case _:
                return False

    def _while(self, var: Var, e: While) -> None:
        """``R.while_loop`` over two nested functions of the state."""
        test, step = self.names.fresh(f"{var.name}_test"), self.names.fresh(f"{var.name}_step")
        self._loop_body(test, e.vars, e.condition)
        self._loop_body(step, e.vars, e.body)
        text = f"R.while_loop({test}, {step}, {self._args(e.init)})"
        self.lines.add(f"{self._target(var, self._inferred(e))} = {text}")

    def _scan(self, var: Var, e: Scan) -> None:
        step = self.names.fresh(f"{var.name}_step")
        self._loop_body(step, (*e.state, *e.elements), e.body)
        text = f"R.scan({step}, init={self._args(e.init)}, inputs={self._args(e.inputs)})"
        self.lines.add(f"{self._target(var, self._inferred(e))} = {text}")

    def _loop_body(self, name: str, params: tuple[Var, ...], body: Body) -> None:
        with self.names.scope():
            shown = [f"{self.names.define(p, p.name)}: {self.type(p.type)}" for p in params]
            with self.lines.block(self.lines.definition(name, shown, ":")):
                self.bindings(body)
                self.lines.add(f"return {self.expr(body.result)}")

    def type(self, t: Type) -> str:
        """A type as an annotation."""
        return type_text(t, self.symbols)

    def dim(self, value: Dim) -> str:
        """A dim."""
        return dim_in(value, self.symbols)

    def expr(self, e: Expr) -> str:
        """An expression; nested ones are printed nested.

        Raises:
            UnityError: It has statements inside and stands where none can (no A-normal form).
        """
        match e:
            case Var():
                return self.names.of(e, e.name)
            case Constant():
                return self.pool.text(e)
            case ShapeValue(dims):
                return f"R.shape({', '.join(self.dim(d) for d in dims)})"
            case PrimValue():
                return self._prim_value(e)
            case Literal(value):
                kind = "R.text" if isinstance(value, str) else "R.dtype"
                return f"{kind}({string_text(str(value))})"
            case FunctionRef(name):
                return name
            case Op(name):
                return f"R.{name}"
            case Tuple(fields):
                return tuple_text([self.expr(f) for f in fields])
            case TupleGet(value, index):
                return f"{self.expr(value)}[{index}]"
            case Call():
                return self._call(e)
            case CallTir(callee, args, out, sym_args, inplace):
                parts = [callee.name, self._args(args), f"out={self._out(out)}"]
                if sym_args:
                    parts.append(f"sym_args={tuple_text([self.dim(d) for d in sym_args])}")
                if inplace:
                    parts.append(f"inplace={tuple_text([str(i) for i in inplace])}")
                return f"R.call_tir({', '.join(parts)})"
            case CallLibrary(symbol, args, out, attrs):
                parts = [string_text(symbol), self._args(args), f"out={self._out(out)}"]
                if attrs:
                    parts.append(f"attrs={attrs_text(attrs, self.symbols)}")
                return f"R.call_library({', '.join(parts)})"
            case CallPython(function, args, out):
                name = getattr(function, "__name__", "function")
                return f"R.call_python({name}, {self._args(args)}, out={self._out(out)})"
            case CallEngine(engine, subgraph, args, out, attrs):
                parts = [string_text(engine), subgraph.name, self._args(args)]
                parts.append(f"out={self._out(out)}")
                if attrs:
                    parts.append(f"attrs={attrs_text(attrs, self.symbols)}")
                return f"R.call_engine({', '.join(parts)})"
            case If() | While() | Scan() | Function():
                raise UnityError(
                    f"a {type(e).__name__} inside an expression has no text",
                    e.span,
                    "bring the function to A-normal form first: transform's Normalize",
                )
            case _:
                assert_never(e)

    def _args(self, args: tuple[Expr, ...]) -> str:
        return tuple_text([self.expr(a) for a in args])

    def _out(self, out: tuple[Type, ...]) -> str:
        types = [self.type(t) for t in out]
        return types[0] if len(types) == 1 else tuple_text(types)

    def _prim_value(self, e: PrimValue) -> str:
        value = e.value
        if isinstance(value, bool):
            return f"R.prim({value})" if e.dtype.kind == "bool" else f'R.prim({value}, "{e.dtype}")'
        if isinstance(value, float):
            return f'R.prim({float_text(value)}, "{e.dtype}")'
        text = self.dim(value)
        return f"R.prim({text})" if e.dtype.name == "int64" else f'R.prim({text}, "{e.dtype}")'

    def _call(self, e: Call) -> str:
        if not isinstance(e.callee, Op):
            args = [self.expr(a) for a in e.args]
            if e.attrs != NO_ATTRS:
                args.append(f"attrs={attrs_text(e.attrs, self.symbols)}")
            return f"{self.expr(e.callee)}({', '.join(args)})"
        if e.callee.name in (PRINT, ASSERT):
            return f"R.{e.callee.name}({', '.join(self._by_value(e))})"
        row = OPS.get(e.callee.name)
        parts = self._by_position(e) if row is None else self._by_row(e, row)
        return f"R.{e.callee.name}({', '.join(parts)})"

    def _by_position(self, e: Call) -> list[str]:
        named = [f"{k}={attr_text(v, self.symbols)}" for k, v in e.attrs.items()]
        return [*(self.expr(a) for a in e.args), *named]

    def _by_value(self, e: Call) -> list[str]:
        """A print's values, or an assert's condition and values, one by one; then the format."""
        *condition, values = e.args
        told = values.fields if isinstance(values, Tuple) else (values,)
        text = string_text(str(e.attrs["format"]))
        named = [f"format={text}"] if e.attrs["format"] else []
        return [*(self.expr(a) for a in (*condition, *told)), *named]

    def _by_row(self, e: Call, row: OpDef) -> list[str]:
        """Arguments by position as far as that goes, then by name; defaults are left out."""
        parts: list[str] = []
        args = iter(e.args)
        by_name = False
        for param in row.params:
            if param.kind != "attr":
                arg = next(args, None)
                if arg is None:
                    by_name = True
                    continue
                text = self._argument(arg, param, e, row)
                parts.append(f"{param.name}={text}" if by_name else text)
            elif param.name in e.attrs and not _is_default(e.attrs[param.name], param.default):
                parts.append(f"{param.name}={attr_text(e.attrs[param.name], self.symbols)}")
                by_name = True
            else:
                by_name = True
        known = {p.name for p in row.params}
        parts += [f"{k}={attr_text(v, self.symbols)}" for k, v in e.attrs.items() if k not in known]
        return parts + [self.expr(a) for a in args]

    def _argument(self, arg: Expr, param: Param, e: Call, row: OpDef) -> str:
        """An argument; shapes and numbers as `call_op` makes them from Python values."""
        if param.kind == "shape" and isinstance(arg, ShapeValue):
            return tuple_text([self.dim(d) for d in arg.dims])
        if param.kind == "tensor" and isinstance(arg, Constant) and arg.data.shape == ():
            number, like = bare_number(arg.data), param.numbers or self._numbers_dtype(e, row)
            if number is not None and like == dtype(arg.data.dtype):
                return number
        return self.expr(arg)

    def _numbers_dtype(self, e: Call, row: OpDef) -> DType | None:
        """The dtype that `call_op` gives to numbers among the arguments: the last tensor's."""
        params = [p for p in row.params if p.kind != "attr"]
        for param, arg in reversed(list(zip(params, e.args, strict=False))):
            if param.kind == "tensor" and param.lends_dtype:
                if isinstance(arg, Constant) and bare_number(arg.data) is not None:
                    continue
                found = self._inferred(arg)
                return found.dtype if isinstance(found, TensorType) else None
        return None


def _is_default(value: object, default: object) -> bool:
    try:
        wanted = attr_value(default)
    except UnityError:
        return False
    return repr(wanted) == repr(value)
