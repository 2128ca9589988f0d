"""Inputs of declared types: what an example says of how far a list or a tree goes.

How far it goes is followed while translating, so a program is for values of one form: that of the
example. It takes the tensors in such a value as a tuple; executables take the value itself
(`unity.runtime.host_forms.trees`), and refuse those of other forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from unity.errors import UnityError
from unity.ir import graph, types
from unity.ir.dtype import dtype
from unity.ir.types import TupleType
from unity.op.builder import GraphBuilder, identifier
from unity.runtime.host_forms.trees import TENSOR, Node, Opened, Rest, opened, parsed

from . import syntax
from .types import Fresh, contradiction, type_of
from .values import Data, Fields, Value, tupled

FORMS = (
    'an example is ("Cons", x, rest): a constructor\'s name, or its tag, and its fields, None for '
    "tensors of a declared type; [x, y] for a list of the prelude's; an object with tag and fields"
)


@dataclass(frozen=True, slots=True)
class Example:
    """How an input of a declared type is taken apart.

    Attributes:
        nodes: Its parts, each before what it holds: `unity.runtime.host_forms.trees.Tree.nodes`.
        leaves: The types of its tensors.
        declarations: The declaration of the type of each part that a constructor makes.
    """

    nodes: tuple[str, ...]
    leaves: tuple[types.Type, ...]
    declarations: Mapping[str, syntax.TypeDeclaration]

    @property
    def key(self) -> tuple[object, ...]:
        """What programs for one example and for another differ by."""
        kinds = (k if _is_known(k) else None for k in self.leaves)
        return (*self.nodes, *kinds)

    @property
    def type(self) -> TupleType:
        """What the program takes."""
        return TupleType(self.leaves)

    def value(self, param: graph.Var, builder: GraphBuilder) -> Value:
        """The value, of the parameter that holds its tensors."""
        tensors = [
            builder.emit(graph.TupleGet(param, i, param.span), f"{param.name}_{i}", param.span)
            for i in range(len(self.leaves))
        ]
        made: list[Value] = []
        for text in reversed(self.nodes):  # what a part holds is made before it
            if not text:
                made.append(tensors.pop())
                continue
            node = parsed(text)
            fields = tuple(made.pop() for _ in range(node.count))
            if node.name:
                data = Data(self.declarations[node.name], node.tag, {node.tag: fields})
                made.append(data)
            else:
                made.append(tupled(fields))
        (whole,) = made
        return whole


def _is_known(kind: types.Type) -> bool:
    shape = kind.shape if isinstance(kind, types.TensorType) else None
    return isinstance(shape, tuple) and all(isinstance(d, int) for d in shape)


def holds_declared(kind: syntax.Type | None) -> bool:
    """Whether a type is a declared one, or a tuple with such in it."""
    match kind:
        case syntax.AdtType():
            return True
        case syntax.TupleType(fields):
            return any(map(holds_declared, fields))
        case _:
            return False


def example_of(param: syntax.Var, value: object, module: syntax.Module, fresh: Fresh) -> Example:
    """How an input is taken apart that is like an example.

    Args:
        param: The parameter of the entry, whose type holds declared ones.
        value: The example.
        module: Declares the types.
        fresh: Makes a symbol for a ``?`` of a declared type.

    Raises:
        UnityError: The example is of another type.
    """
    assert param.type is not None
    walk = _Walk(module, fresh, identifier(param.name))
    stack = [_Part(value, param.type, f"the example of {param.name!r}")]
    while stack:
        stack += reversed(walk.part(stack.pop()))
    return Example(tuple(walk.nodes), tuple(walk.leaves), walk.declarations)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of an example, with its type and the place that messages tell."""

    value: object
    type: syntax.Type
    where: str


@dataclass(slots=True)
class _Walk:
    """What was found so far."""

    module: syntax.Module
    fresh: Fresh
    name: str
    nodes: list[str] = field(default_factory=list[str])
    leaves: list[types.Type] = field(default_factory=list[types.Type])
    declarations: dict[str, syntax.TypeDeclaration] = field(
        default_factory=dict[str, syntax.TypeDeclaration]
    )

    def part(self, part: _Part) -> list[_Part]:
        """Note a part; those that it holds, in order."""
        match part.type:
            case syntax.TupleType(fields):
                return self._tuple(part, fields)
            case syntax.AdtType():
                return self._declared(part, part.type)
            case syntax.TensorType() | syntax.TypeVar() | syntax.Hole():
                self.nodes.append(TENSOR)
                self.leaves.append(self._tensor(part))
                return []
            case _:
                raise UnityError(
                    f"{part.where} is a function or a reference, which no input can be",
                    part.type.span,
                )

    def _tuple(self, part: _Part, kinds: tuple[syntax.Type, ...]) -> list[_Part]:
        value = part.value
        if not isinstance(value, tuple | list) or len(value) != len(kinds):
            raise UnityError(f"{part.where} must be a tuple of {len(kinds)}", hint=FORMS)
        self.nodes.append(Node("", 0, len(kinds)).text)
        return _parts(part, value, kinds)

    def _declared(self, part: _Part, kind: syntax.AdtType) -> list[_Part]:
        if kind.name not in self.module.types:
            raise UnityError(f"no type is called {kind.name}", kind.span)
        declaration = self.module.types[kind.name]
        found = opened(part.value)
        if isinstance(found, Rest):
            found = _of_list(found, declaration)
        names = [c.name for c in declaration.constructors]
        known = [
            (tag, c)
            for tag, c in enumerate(declaration.constructors)
            if found is not None and found.constructor in (c.name, tag)
        ]
        if found is None or not known:
            got = type(part.value).__name__ if found is None else str(found)
            raise UnityError(
                f"{part.where} must be of the type {kind.name} ({', '.join(names)}), got {got}",
                hint=FORMS,
            )
        tag, constructor = known[0]
        if len(found.fields) != len(constructor.fields):
            raise UnityError(
                f"{part.where}: {constructor.name} has {len(constructor.fields)} fields, "
                f"got {len(found.fields)}",
                hint=FORMS,
            )
        self.nodes.append(Node(constructor.name, tag, len(constructor.fields)).text)
        self.declarations[constructor.name] = declaration
        bound = dict(zip(declaration.type_params, kind.arguments, strict=False))
        kinds = tuple(_with(f, bound) for f in constructor.fields)
        return _parts(part, found.fields, kinds)

    def _tensor(self, part: _Part) -> types.Type:
        name = f"{self.name}_{len(self.leaves)}"
        array = None if part.value is None else np.asarray(part.value)
        own = None
        if array is not None and array.dtype.kind not in "OUS":
            own = types.TensorType(array.shape, dtype(array.dtype))
        elif array is not None:
            raise UnityError(f"{part.where} must be a tensor, got {type(part.value).__name__}")
        if not isinstance(part.type, syntax.TensorType):
            if own is None:
                raise UnityError(f"{part.where} must be an array, as the source declares no type")
            return own
        given = not isinstance(part.value, bool | int | float)  # whose dtype is nobody's wish
        wrong = contradiction(part.type, own) if own is not None and given else None
        if wrong is not None:
            raise UnityError(f"{part.where} is {wrong}", part.type.span)
        return type_of(part.type, name, self.fresh)


def _parts(part: _Part, values: object, kinds: tuple[syntax.Type, ...]) -> list[_Part]:
    assert isinstance(values, tuple | list)
    pairs = zip(values, kinds, strict=True)
    return [_Part(v, k, f"{part.where}[{i}]") for i, (v, k) in enumerate(pairs)]


def _of_list(rest: Rest, declaration: syntax.TypeDeclaration) -> Opened | None:
    """A Python list as what the constructors of a list make; None for types of another make."""
    by_count = {len(c.fields): c for c in declaration.constructors}
    if len(declaration.constructors) != 2 or set(by_count) != {0, 2}:
        return None
    tail = by_count[2].fields[1]
    if not isinstance(tail, syntax.AdtType) or tail.name != declaration.name:
        return None
    fields = rest.opened
    return Opened(by_count[len(fields)].name, fields)


def _with(kind: syntax.Type, bound: Mapping[str, syntax.Type]) -> syntax.Type:
    """A type with others in the places of type parameters."""
    match kind:
        case syntax.TypeVar(name):
            return bound.get(name, kind)
        case syntax.TupleType(fields, span):
            return syntax.TupleType(tuple(_with(f, bound) for f in fields), span)
        case syntax.AdtType(name, arguments, span):
            return syntax.AdtType(name, tuple(_with(a, bound) for a in arguments), span)
        case _:
            return kind


def counts_of(node: str) -> list[tuple[int, int]]:
    """The tags that a part of a result may have, and how many fields there are of each.

    >>> counts_of("? 0:2 1:0")
    [(0, 2), (1, 0)]
    """
    pairs = (word.split(":") for word in node.split()[1:])
    return [(int(tag), int(count)) for tag, count in pairs]


def form_of(value: Value) -> tuple[str, ...]:
    """The parts of a result, each before what it holds, as `packed` orders them.

    They are `Tree.nodes`, but for what is of several constructors: ``"? 0:2 1:0"``, whose tag and
    the fields of each follow.
    """
    found: list[str] = []
    stack = [value]
    while stack:
        part = stack.pop()
        inner: tuple[Value, ...] = ()
        match part:
            case Data(declaration, int() as tag, fields):
                inner = fields[tag]
                node = Node(declaration.constructors[tag].name, tag, len(inner)).text
            case Data(_, _, fields):
                inner = tuple(v for tag in sorted(fields) for v in fields[tag])
                node = " ".join(["?", *(f"{tag}:{len(fields[tag])}" for tag in sorted(fields))])
            case graph.Tuple() | Fields():
                inner = part.fields
                node = Node("", 0, len(inner)).text
            case _:
                node = TENSOR
        found.append(node)
        stack += reversed(inner)
    return tuple(found)
