"""The code of one graph function: its bindings as instructions over registers and symbol slots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from unity.codegen.vm.calls import call, call_python, call_tir
from unity.codegen.vm.loops import scan_loop, while_loop
from unity.codegen.vm.specs import Scope
from unity.codegen.vm.tables import Tables
from unity.errors import Span, place_of
from unity.ir.aliases import aliases_of
from unity.ir.graph import (
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
from unity.ir.lattice import atom_type
from unity.ir.module import ExternFunc
from unity.ir.types import ObjectType, TensorType, Type
from unity.ir.visit import free_vars
from unity.runtime import bytecode as bc
from unity.runtime.bytecode import spec_sizes
from unity.runtime.bytecode.sizes import Size, slots_of, untold
from unity.runtime.host_forms import forms_of
from unity.runtime.hosts.registered import registered_host


def build_function(name: str, function: Function, tables: Tables) -> bc.FunctionCode:
    """The code of a graph function of the module."""
    return FunctionBuilder(tables, name).build(function)


@dataclass(slots=True)
class FunctionBuilder:
    """State while one function is built.

    Attributes:
        shared: Registers that may lie in an argument, a constant or the arena: a result must not.
        made: For a register that memory is allocated for, the name of its variable.
        roots: For a register that is another shape of a register's storage, that register.
        results: What messages call a value that a function of the host gave.
    """

    tables: Tables
    name: str
    scope: Scope = field(default_factory=Scope)
    registers: list[bc.Spec] = field(default_factory=list)
    code: list[bc.Instruction] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    env: dict[Var, bc.Tree] = field(default_factory=dict)
    shared: set[bc.Reg] = field(default_factory=set)
    roots: dict[bc.Reg, bc.Reg] = field(default_factory=dict)
    made: dict[bc.Reg, str] = field(default_factory=dict)
    results: dict[Var, str] = field(default_factory=dict)
    captured: int = 0

    def build(self, function: Function) -> bc.FunctionCode:
        """Build the whole function."""
        captured_slots = len(self.scope.symbols)
        params: list[bc.ParamInfo] = []
        for var in function.params:
            spec = self.scope.spec(var.type)
            tree = self.fresh(spec)
            self.env[var] = tree
            self.shared.update(bc.leaves(tree))
            params.append(bc.ParamInfo(var.name, spec, tree))
        whole = bc.TupleSpec(tuple(q.spec for q in params))
        self.require_told(whole, f"the inputs of {self.name}")
        self.bind(whole)
        result = self.body(function.body)
        aliases = aliases_of(function)
        home = {k: params[i].registers for k, i in aliases.items()}
        self.emit(bc.Return(self.returned(result, home)), "")
        spec = self.scope.spec(function.result)
        return bc.FunctionCode(
            self.name, tuple(params), spec, tuple(self.scope.symbols), tuple(self.registers),
            tuple(self.code), tuple(self.labels), self.captured, captured_slots,
            _names(function, "input_names"), _names(function, "output_names"),
            tuple(sorted(aliases.items())), forms_of(function.attrs),
        )  # fmt: skip

    # ------------------------------------------------------------------ registers and instructions

    def emit(self, instruction: bc.Instruction, label: str) -> int:
        """Append an instruction; its index."""
        if isinstance(instruction, bc.AllocTensor | bc.View):
            self.made[instruction.dst] = label
        for size in _sizes_read(instruction):
            for slot in set(slots_of(size)) - self.scope.bound:
                self.gap(f"{self.name}: {self.scope.symbols[slot].name} has no value at {label}")
        self.code.append(instruction)
        self.labels.append(label)
        return len(self.code) - 1

    def fresh(self, spec: bc.Spec) -> bc.Tree:
        """New registers for a value."""
        if isinstance(spec, bc.TupleSpec):
            return tuple(self.fresh(f) for f in spec.fields)
        self.registers.append(spec)
        return len(self.registers) - 1

    def register(self, spec: bc.Spec) -> bc.Reg:
        """A new register for a value that is no tuple."""
        tree = self.fresh(spec)
        assert isinstance(tree, int)
        return tree

    def bind(self, spec: bc.Spec) -> None:
        """Note that the symbols of a spec have values from here on."""
        self.scope.bound.update(self.scope.unbound(spec))

    def require_told(self, spec: bc.Spec, what: str) -> None:
        """Note new symbols of which no size says what they are.

        Args:
            spec: What a value is checked against.
            what: What the message calls the value: ``"the result of f"``.
        """
        for slot in untold(self.scope.unbound(spec), spec_sizes(spec)):
            symbol = self.scope.symbols[slot].name
            how = f"by being {symbol} alone, or linear in it"
            self.gap(f"no size in {what} tells {symbol}, {how}")

    def gap(self, what: str) -> None:
        """Note something that the VM can't run."""
        if what not in self.tables.gaps:
            self.tables.gaps.append(what)

    def missing(self, what: str, of: Type) -> bc.Tree:
        """A gap in place of a value."""
        self.gap(f"{self.name}: {what}")
        return self.fresh(self.scope.spec(of))

    def owned(self, tree: bc.Tree, taken: set[bc.Reg] | None = None) -> bc.Tree:
        """The value with copies of what is shared or occurs twice."""
        taken = set() if taken is None else taken
        if isinstance(tree, tuple):
            return tuple(self.owned(t, taken) for t in tree)
        spec = self.registers[tree]
        root = self.roots.get(tree, tree)
        if isinstance(spec, bc.TensorSpec) and (tree in self.shared or root in taken):
            dst = self.register(spec)
            self.emit(bc.Copy(dst, tree), "copy of the result")
            return dst
        taken.add(root)
        return tree

    def returned(self, result: bc.Tree, home: dict[int, bc.Tree]) -> bc.Tree:
        """The results, those that take a parameter's storage (`home`) put there."""
        if not home:
            return self.owned(result)
        fields = result if isinstance(result, tuple) else (result,)
        there = {
            k: self.roots.get(r, r) == home[k]
            for k, r in enumerate(fields)
            if k in home and isinstance(r, int)
        }
        taken: set[bc.Reg] = set()
        # All copies come before anything is written over.
        final = [home[k] if there.get(k) else self.owned(r, taken) for k, r in enumerate(fields)]
        for k, moved in there.items():
            target, source = home[k], final[k]
            if not moved and isinstance(target, int) and isinstance(source, int):
                self.emit(bc.Fill(target, source), "result in its place")
                final[k] = target
        return tuple(final) if isinstance(result, tuple) else final[0]

    # ------------------------------------------------------------------ bindings

    def body(self, body: Body) -> bc.Tree:
        """A body's bindings; where its result is."""
        for block in body.blocks:
            for binding in block.bindings:
                match binding:
                    case VarBinding(var, value):
                        tree = self.value(value, var.type, var.name)
                        self.check_new_symbols(tree, var, binding.span)
                        self.note_host(var, value)
                    case MatchCast(var, value, to, span):
                        tree = self.match_cast(var, value, to, span)
                    case _:
                        assert_never(binding)
                self.env[var] = tree
        return self.atom(body.result, "result")

    def check_new_symbols(self, tree: bc.Tree, var: Var, span: Span | None) -> None:
        """Bind symbols that a value brings along: data-dependent sizes."""
        spec = self.scope.spec(var.type)
        new = self.scope.unbound(spec)
        if new:
            told = f"the sizes of {var.name!r}"
            self.require_told(spec, f"{var.name!r} of {self.name}")
            where = place_of(span)
            self.emit(bc.Match(tree, spec, new, bc.ObjectSpec(), told, where), var.name)
            self.bind(spec)

    def note_host(self, var: Var, value: Expr) -> None:
        """Note what messages call the result of a function of the host."""
        match value:
            case Call(FunctionRef(name)):
                found = self.tables.module[name]
                if isinstance(found, ExternFunc):
                    self.results[var] = _result_of(found)
            case _:
                pass

    def match_cast(self, var: Var, value: Expr, to: Type, span: Span | None) -> bc.Tree:
        """A checked cast: the same registers under a new type."""
        rule = "" if span is None else span.rule
        name = f"{var.name} of {span.node}" if span is not None and span.node else var.name
        told = self.results.get(value) if isinstance(value, Var) else None
        told = told or (span.node if span is not None and rule else f"match_cast {name!r}")
        source = self.atom(value, var.name)
        known = self.scope.spec(atom_type(value) or ObjectType())
        spec = self.scope.spec(to)
        self.require_told(spec, told)
        where = "" if span is not None and span.node else place_of(span)  # a node is in the name
        new = self.scope.unbound(spec)
        self.emit(bc.Match(source, spec, new, known, told, where, rule), var.name)
        self.bind(spec)
        return source

    def atom(self, e: Expr, label: str) -> bc.Tree:
        """Where an atom's value is."""
        return self.value(e, atom_type(e) or ObjectType(), label)

    def reg(self, e: Expr, label: str) -> bc.Reg:
        """Where an atom's value is, if it is no tuple."""
        tree = self.atom(e, label)
        assert isinstance(tree, int), e
        return tree

    def value(self, e: Expr, of: Type, label: str) -> bc.Tree:
        """Instructions for an expression; where its value is."""
        match e:
            case Var():
                return self.env[e]
            case Constant():
                dst = self.register(self.scope.spec(of))
                self.emit(bc.LoadConst(dst, self.tables.constant(e)), e.name or label)
                self.shared.add(dst)
                return dst
            case ShapeValue(dims):
                dst = self.register(self.scope.spec(of))
                self.emit(bc.MakeShape(dst, self.scope.sizes(dims)), label)
                return dst
            case PrimValue(value, kind):
                number = value if isinstance(value, float | bool) else self.scope.size(value)
                known = None if isinstance(number, float | bool) or not kind.is_int else number
                dst = self.register(bc.ScalarSpec(kind.name, known))
                self.emit(bc.MakeScalar(dst, number, kind.name), label)
                return dst
            case Literal(value):
                dst = self.register(bc.ObjectSpec())
                self.emit(bc.MakeLiteral(dst, str(value), not isinstance(value, str)), label)
                return dst
            case Tuple(fields):
                return tuple(self.atom(f, label) for f in fields)
            case TupleGet(value, index):
                fields_of = self.atom(value, label)
                assert isinstance(fields_of, tuple), e
                return fields_of[index]
            case FunctionRef(name):
                dst = self.register(bc.ObjectSpec())
                self.emit(bc.MakeClosure(dst, self.function(name), (), ()), label)
                return dst
            case Function():
                return self.closure(e, label)
            case Call():
                return call(self, e, of, label)
            case CallTir():
                return call_tir(self, e, label)
            case CallPython():
                return call_python(self, e, label)
            case CallLibrary(symbol):
                return self.missing(f"library call {symbol}", of)
            case CallEngine(engine):
                return self.missing(f"engine call {engine}", of)
            case If():
                return self.conditional(e, of, label)
            case While():
                return while_loop(self, e, label)
            case Scan():
                return scan_loop(self, e, of, label)
            case Op(name):
                return self.missing(f"operator {name} as a value", of)
            case _:
                assert_never(e)

    # ------------------------------------------------------------------ functions and memory

    def function(self, name: str) -> int:
        """The index of a function of the module; an external one gets its code at its first use."""
        found = self.tables.module[name]
        if name not in self.tables.names and isinstance(found, ExternFunc):
            index = self.tables.names[name] = self.tables.reserve()
            self.tables.functions[index] = FunctionBuilder(
                self.tables, f"{bc.EXTERN}{name}"
            ).extern(found)
        return self.tables.names[name]

    def extern(self, extern: ExternFunc) -> bc.FunctionCode:
        """The code of an external function: what the host's is given and gives is checked."""
        params: list[bc.ParamInfo] = []
        for k, kind in enumerate(extern.type.params):
            spec = self.scope.spec(kind)
            params.append(bc.ParamInfo(f"argument {k}", spec, self.fresh(spec)))
        whole = bc.TupleSpec(tuple(q.spec for q in params))
        self.require_told(whole, f"the arguments of {extern.symbol}")
        self.bind(whole)
        symbol, spec = extern.symbol, self.scope.spec(extern.type.result)
        self.require_told(spec, _result_of(extern))
        result = self.fresh(spec)
        host = self.tables.host(symbol, registered_host(symbol))
        self.emit(bc.CallHost(result, host, tuple(q.registers for q in params)), symbol)
        what = _result_of(extern)
        self.emit(bc.Match(result, spec, self.scope.unbound(spec), bc.ObjectSpec(), what), symbol)
        self.emit(bc.Return(result), "")
        return bc.FunctionCode(
            self.name, tuple(params), spec, tuple(self.scope.symbols), tuple(self.registers),
            tuple(self.code), tuple(self.labels),
        )  # fmt: skip

    def allocate(self, of: Type, label: str) -> bc.Reg:
        """A fresh tensor of a type whose shape is known."""
        assert isinstance(of, TensorType), of
        spec = self.scope.spec(of)
        assert isinstance(spec, bc.TensorSpec)
        dst = self.register(spec)
        if spec.shape is None or spec.dtype is None:
            self.gap(f"{self.name}: {label} is computed into a tensor of unknown shape or dtype")
            return dst
        self.emit(bc.AllocTensor(dst, spec.shape, spec.dtype), label)
        return dst

    # ------------------------------------------------------------------ control flow and closures

    def conditional(self, e: If, of: Type, label: str) -> bc.Tree:
        """Both branches move their results to the same registers."""
        dst = self.fresh(self.scope.spec(of))
        condition = self.reg(e.condition, label)
        branch = self.emit(bc.Branch(condition, 0), label)
        before = set(self.scope.bound)
        self.move(dst, self.body(e.then), label)
        self.scope.bound = set(before)
        jump = self.emit(bc.Jump(0), label)
        self.code[branch] = bc.Branch(condition, len(self.code))
        self.move(dst, self.body(e.orelse), label)
        self.scope.bound = before
        self.code[jump] = bc.Jump(len(self.code))
        return dst

    def move(self, dst: bc.Tree, src: bc.Tree, label: str) -> None:
        """Give registers the value of others of the same structure."""
        for to, value in zip(bc.leaves(dst), bc.leaves(src), strict=True):
            self.emit(bc.Move(to, value), label)
            if value in self.shared:
                self.shared.add(to)

    def closure(self, function: Function, label: str) -> bc.Reg:
        """A function value: what it captures comes first in its frame."""
        free = free_vars(function)
        inner = FunctionBuilder(self.tables, f"{self.name}.{label}", self.scope.copy())
        captured: list[bc.Reg] = []
        for var, tree in self.env.items():
            if var in free:
                captured.extend(bc.leaves(tree))
                inner.env[var] = inner.fresh(self.scope.spec(var.type))
                inner.shared.update(bc.leaves(inner.env[var]))
        inner.captured = len(captured)
        slots = tuple(range(len(self.scope.symbols)))
        index = self.tables.reserve()
        self.tables.functions[index] = inner.build(function)
        dst = self.register(bc.ObjectSpec())
        self.emit(bc.MakeClosure(dst, index, tuple(captured), slots), label)
        return dst


def _result_of(host: ExternFunc) -> str:
    return f"the result of {host.symbol}"


def _names(function: Function, attr: str) -> tuple[str, ...]:
    value = function.attrs.get(attr, ())
    return tuple(str(v) for v in value) if isinstance(value, tuple) else ()


def _sizes_read(instruction: bc.Instruction) -> tuple[Size, ...]:
    match instruction:
        case bc.CallKernel(_, _, sizes) | bc.MakeShape(_, sizes):
            return sizes
        case bc.AllocTensor(_, shape) | bc.Reshape(_, _, shape):
            return shape
        case bc.AllocArena(_, size):
            return (size,)
        case bc.View(_, _, offset, shape) | bc.Element(_, _, offset, shape):
            return (offset, *shape)
        case bc.SetSlot(_, value):
            return (value,)
        case _:
            return ()
