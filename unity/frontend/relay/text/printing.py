"""Relay's syntax as Relay's text, which `parse_module` reads back.

Every call, branch and function is a binding of its own, as in TVM's texts; attributes are written
where they differ from their defaults. Large constants stand in the metadata section.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from unity.errors import UnityError
from unity.ir.dtype import Array, DType

from .. import syntax
from ..saved.writing import tensor_bytes
from ..schema import signature

_SUFFIXES = {"int32": "", "int64": "i64", "float32": "f", "float64": "f64"}
_ODD = re.compile(r"[^\w./:$-]")
_BOUND = (
    syntax.Call,
    syntax.Function,
    syntax.If,
    syntax.Match,
    syntax.RefCreate,
    syntax.RefRead,
    syntax.RefWrite,
)


def print_relay(module: syntax.Module, *, constants: bool = True) -> str:
    """The text of a module.

    Args:
        module: The module; values for its parameters are no part of its text.
        constants: Whether the metadata section, which holds large constants, is written. A text
            without it is for people: nothing can read it back.
    """
    found: list[Array] = []
    texts = [_declaration(d) for d in module.types.values()]
    texts += (
        _Function(found).definition(f"def @{name}", function)
        for name, function in module.functions.items()
    )
    text = '#[version = "0.0.5"]\n' + "\n\n".join(texts) + "\n"
    return f"{text}\n#[metadata]\n{_metadata(found)}\n" if constants and found else text


def print_expression(expr: syntax.Expr) -> str:
    """The text of an expression, for people: what it reads need not be bound."""
    if isinstance(expr, syntax.Function):
        return _Function([]).definition("fn ", expr)
    writer = _Function([])
    value = writer.value(expr)
    return "\n".join([*writer.lines, value])


def _metadata(constants: Sequence[Array]) -> str:
    places = [3 + i for i in range(len(constants))]
    nodes: list[dict[str, object]] = [
        {"type_key": ""},
        {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]},
        {"type_key": "Array", "data": places},
    ]
    nodes += ({"type_key": "relay.Constant", "attrs": {"data": str(i)}} for i in range(len(places)))
    tensors = [base64.b64encode(tensor_bytes(a)).decode() for a in constants]
    return json.dumps(
        {"root": 1, "nodes": nodes, "b64ndarrays": tensors, "attrs": {"tvm_version": "0.18.0"}}
    )


def type_text(kind: syntax.Type) -> str:
    """A type.

    >>> from unity.ir.dtype import dtype
    >>> type_text(syntax.TensorType((1, None), dtype("float32")))
    'Tensor[(1, ?), float32]'
    """
    match kind:
        case syntax.TensorType((), element):
            return str(element)
        case syntax.TensorType(shape, element):
            return f"Tensor[({', '.join('?' if d is None else str(d) for d in shape)}), {element}]"
        case syntax.TupleType(fields):
            return f"({', '.join(map(type_text, fields))}{',' * (len(fields) == 1)})"
        case syntax.FunctionType(params, result, own):
            of = f"[{', '.join(own)}]" if own else ""
            return f"fn {of}({', '.join(map(type_text, params))}) -> {type_text(result)}"
        case syntax.AdtType(name, arguments):
            return f"{name}[{', '.join(map(type_text, arguments))}]" if arguments else name
        case syntax.TypeVar(name):
            return name
        case syntax.RefType(value):
            return f"ref({type_text(value)})"
        case syntax.Hole():
            return "_"


def _declaration(declared: syntax.TypeDeclaration) -> str:
    of = f"[{', '.join(declared.type_params)}]" if declared.type_params else ""
    if not declared.constructors:
        return f"extern type {declared.name}{of}"
    lines = (
        f"  {c.name}({', '.join(map(type_text, c.fields))})," if c.fields else f"  {c.name},"
        for c in declared.constructors
    )
    return "\n".join([f"type {declared.name}{of} {{", *lines, "}"])


def attribute_text(value: syntax.AttrValue) -> str:
    """The value of an attribute.

    Raises:
        UnityError: Text has no form for it.
    """
    match value:
        case bool() | None:
            return str(value)
        case float():
            return f"{value!r}f"
        case int():
            return str(value)
        case str() | DType():
            return f'"{value}"'
        case tuple():
            return f"[{', '.join(map(attribute_text, value))}]"
        case dict():
            return f"{{{', '.join(f'{k}={attribute_text(v)}' for k, v in value.items())}}}"
        case syntax.Record():
            raise UnityError(f"an attribute holds a {value.key}, which has no text")


@dataclass(slots=True)
class _Function:
    """Writes one function: lines of its blocks, and what each value is called.

    Attributes:
        constants: Of the whole text.
        lines: Of the block being written.
        names: What values are called; blocks within see those around them.
    """

    constants: list[Array]
    lines: list[str] = field(default_factory=list[str])
    names: dict[syntax.Expr, str] = field(default_factory=dict[syntax.Expr, str])
    taken: set[str] = field(default_factory=set[str])
    bound: list[int] = field(default_factory=lambda: [0])

    def definition(self, head: str, function: syntax.Function) -> str:
        """A function, with what it is called before its parameters."""
        known = dict(self.names)  # a variable may be a parameter of several functions
        params = [self.declared(p) for p in function.params]
        params += (f"{k}={attribute_text(v)}" for k, v in function.attributes.items())
        of = f"[{', '.join(function.type_params)}]" if function.type_params else ""
        result = f" -> {type_text(function.result)}" if function.result is not None else ""
        text = f"{head}{of}({', '.join(params)}){result} {self.block(function.body)}"
        self.names = known
        return text

    def declared(self, var: syntax.Var) -> str:
        """A variable where it is bound, with its type."""
        base = _ODD.sub("_", var.name) or "v"
        base = f"v{base}" if not (base[0].isalpha() or base[0] == "_") else base
        name, count = base, 1
        while name in self.taken:
            name, count = f"{base}_{count}", count + 1
        self.taken.add(name)
        self.names[var] = f"%{name}"
        return f"%{name}: {type_text(var.type)}" if var.type is not None else f"%{name}"

    def block(self, body: syntax.Expr) -> str:
        """A body in braces."""
        outer, known = self.lines, dict(self.names)
        self.lines = []
        value = self.value(body)
        inner = [*self.lines, value]
        self.lines, self.names = outer, known
        return "\n".join(["{", *(f"  {line}" for t in inner for line in t.split("\n")), "}"])

    def value(self, expr: syntax.Expr) -> str:
        """What an expression is called, once all it takes is bound; chains may be long."""
        stack = [expr]
        while stack:
            top = stack[-1]
            if top in self.names:
                stack.pop()
                continue
            if isinstance(top, syntax.Let):
                if self._let(top, stack):
                    self.names[top] = self.names[top.body]
                    stack.pop()
                continue
            missing = [e for e in self._taken(top) if e not in self.names]
            if missing:
                stack += reversed(missing)
                continue
            self.names[top] = self._named(top)
            stack.pop()
        return self.names[expr]

    def _let(self, let: syntax.Let, stack: list[syntax.Expr]) -> bool:
        """Bind a let's variable once its value is there; whether its body is as well."""
        if let.var not in self.names:
            if isinstance(let.value, syntax.Function):
                target = self.declared(let.var)  # it may call itself
                value = self.definition("fn ", let.value)
            elif let.value not in self.names:
                stack.append(let.value)
                return False
            else:
                value, target = self.names[let.value], self.declared(let.var)
            self.lines.append(f"let {target} = {value};")
        if let.body not in self.names:
            stack.append(let.body)
            return False
        return True

    def _taken(self, expr: syntax.Expr) -> tuple[syntax.Expr, ...]:
        """What must be bound before an expression: not what stands in blocks of its own."""
        match expr:
            case syntax.Function():
                return ()
            case syntax.If():
                return (expr.condition,)
            case syntax.Match():
                return (expr.value,)
            case _:
                return syntax.children(expr)

    def _named(self, expr: syntax.Expr) -> str:
        text = self._text(expr)
        return self._bind(text) if isinstance(expr, _BOUND) else text

    def _bind(self, text: str) -> str:
        name = f"%{self.bound[0]}"
        self.bound[0] += 1
        self.lines.append(f"{name} = {text};")
        return name

    def _text(self, expr: syntax.Expr) -> str:
        """An expression whose operands have names."""
        of = self.names
        match expr:
            case syntax.Var():  # bound nowhere: a part of a program is being shown
                return f"%{expr.name}"
            case syntax.GlobalVar():
                return f"@{expr.name}"
            case syntax.Op() | syntax.Constructor():
                return expr.name
            case syntax.Constant():
                return self._constant(expr.value)
            case syntax.Tuple():
                fields = ", ".join(of[f] for f in expr.fields)
                return f"({fields}{',' * (len(expr.fields) == 1)})"
            case syntax.TupleGetItem():
                whole = of[expr.tuple]
                plain = re.fullmatch(r"%\w+", whole)
                return f"{whole if plain else self._bind(whole)}.{expr.index}"
            case syntax.Call():
                return self._call(expr)
            case syntax.If():
                then, other = self.block(expr.then), self.block(expr.otherwise)
                return f"if ({of[expr.condition]}) {then} else {other}"
            case syntax.Match():
                return self._match(expr)
            case syntax.Function():
                return self.definition("fn ", expr)
            case syntax.RefCreate():
                return f"ref({of[expr.value]})"
            case syntax.RefRead():
                return f"ref_read({of[expr.ref]})"
            case syntax.RefWrite():
                return f"ref_write({of[expr.ref]}, {of[expr.value]})"
            case syntax.Let():
                raise AssertionError("lets are bound by `_let`")

    def _call(self, call: syntax.Call) -> str:
        known = signature(call.callee.name) if isinstance(call.callee, syntax.Op) else None
        fields = known.fields if known is not None and known.fields is not None else {}
        parts = [self.names[a] for a in call.arguments]
        parts += (
            f"{name}={attribute_text(value)}"
            for name, value in call.attributes.items()
            if name not in fields or value != fields[name].default
        )
        callee = self.names[call.callee]
        if isinstance(call.callee, syntax.Constructor) and not parts:
            return callee
        return f"{callee}({', '.join(parts)})"

    def _match(self, expr: syntax.Match) -> str:
        clauses = []
        for clause in expr.clauses:
            pattern = self._pattern(clause.pattern)
            clauses.append(f"{pattern} => {self.block(clause.body)}")
        lines = [f"  {line}" for c in clauses for line in f"{c},".split("\n")]
        mark = "" if expr.complete else "?"
        return "\n".join([f"match{mark} ({self.names[expr.value]}) {{", *lines, "}"])

    def _pattern(self, pattern: syntax.Pattern) -> str:
        match pattern:
            case syntax.WildcardPattern():
                return "_"
            case syntax.VarPattern(var):
                return self.declared(var)
            case syntax.ConstructorPattern(constructor, fields):
                inner = ", ".join(map(self._pattern, fields))
                return f"{constructor}({inner})" if fields else constructor
            case syntax.TuplePattern(fields):
                return f"({', '.join(map(self._pattern, fields))})"

    def _constant(self, value: Array) -> str:
        name = str(value.dtype)
        if value.ndim == 0 and name == "bool":
            return str(bool(value))
        if value.ndim == 0 and name in _SUFFIXES:
            number = str(value[()])
            return f"{number}{_SUFFIXES[name]}"
        self.constants.append(value)
        return f"meta[relay.Constant][{len(self.constants) - 1}]"
