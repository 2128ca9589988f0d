"""Modules in TVM's JSON (``tvm.ir.save_json(mod)``), 0.6 to 0.19."""

from __future__ import annotations

import json

from unity.errors import UnityError

from .. import syntax
from .expressions import Expressions
from .objects import Node, Objects
from .plain import is_empty, plain
from .types import type_of

_READ = ("functions", "type_definitions", "attrs", "source_map", "span", "_checked_type_")
_NAMES = ("global_var_map_", "global_type_var_map_")
"""Maps from names to the objects that have them, which those say themselves."""


def module_of_json(file: str, text: str | bytes) -> syntax.Module:
    """Read a module, or a function alone, which is its `main`.

    Args:
        file: What messages call the JSON.
        text: All of it.

    Raises:
        UnityError: It is no JSON, none of TVM's, or damaged; the object is told.
    """
    try:
        graph = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = f" ({error})" if isinstance(error, json.JSONDecodeError) else ""
        raise UnityError(f"{file} is no JSON{reason}", hint="it may be cut short") from None
    return module_of_objects(Objects.of(file, graph))


def module_of_objects(objects: Objects) -> syntax.Module:
    """The module that is the root of a graph of objects.

    Raises:
        UnityError: The root is no Relay module.
    """
    root = objects.node(objects.root)
    reader = Expressions(objects)
    if root.key == "IRModule":
        return _module(reader, root)
    found = reader.expression(root.index)
    if not isinstance(found, syntax.Function):
        found = syntax.Function(_free(found), found, span=objects.span(root))
    return syntax.Module({"main": found}, ignored=tuple(reader.ignored), file=objects.file)


def _module(reader: Expressions, root: Node) -> syntax.Module:
    objects = reader.objects
    functions: dict[str, syntax.Function] = {}
    for key, value in objects.pairs(objects.member(root, "functions")):
        name = objects.string(objects.node(key), "name_hint")
        held = objects.node(value)
        if held.key == "tir.PrimFunc":
            raise objects.error(
                held,
                f"@{name} was lowered to a kernel: the module was saved after compilation",
                "save the module that relay.build was given",
            )
        found = reader.expression(value)
        if not isinstance(found, syntax.Function):
            raise objects.error(held, f"@{name} is no function")
        functions[name] = found
    types: dict[str, syntax.TypeDeclaration] = {}
    declared = objects.optional(root, "type_definitions")
    for _, value in objects.pairs(declared) if declared is not None else ():
        declaration = _declaration(objects, objects.node(value))
        types[declaration.name] = declaration
    held_attributes = objects.optional(root, "attrs")
    attributes = plain(objects, held_attributes.index) if held_attributes is not None else {}
    if not isinstance(attributes, dict):
        raise objects.error(root, "its attributes are no map")
    reader.ignored += (
        syntax.Ignored("the module", name)
        for name, text in root.fields.items()
        if name not in (*_READ, *_NAMES) and not _says_nothing(objects, text)
    )
    return syntax.Module(
        functions,
        types,
        attributes=attributes,
        ignored=tuple(reader.ignored),
        file=objects.file,
    )


def _says_nothing(objects: Objects, text: str) -> bool:
    if is_empty(objects, text):
        return True
    return (
        text.isdecimal()
        and objects.node(int(text)).key == "Map"
        and not (objects.node(int(text)).items)
    )


def _declaration(objects: Objects, node: Node) -> syntax.TypeDeclaration:
    name = objects.string(objects.member(node, "header"), "name_hint")
    params = tuple(objects.string(p, "name_hint") for p in objects.members(node, "type_vars"))
    constructors = []
    for member in objects.members(node, "constructors"):
        fields = []
        for one in objects.members(member, "inputs"):
            found = type_of(objects, one)
            if found is None:
                raise objects.error(member, "a constructor of no type")
            fields.append(found)
        constructors.append(
            syntax.ConstructorDeclaration(
                objects.string(member, "name_hint"), tuple(fields), objects.span(member)
            )
        )
    return syntax.TypeDeclaration(name, params, tuple(constructors), objects.span(node))


def _free(expr: syntax.Expr) -> tuple[syntax.Var, ...]:
    """The variables of an expression that nothing in it binds, in the order they are met."""
    found: dict[syntax.Var, None] = {}
    bound: set[syntax.Var] = set()
    seen: set[syntax.Expr] = set()
    stack: list[syntax.Expr] = [expr]
    while stack:
        top = stack.pop()
        if top in seen:
            continue
        seen.add(top)
        match top:
            case syntax.Var():
                found[top] = None
            case syntax.Let():
                bound.add(top.var)
            case syntax.Function():
                bound.update(top.params)
            case syntax.Match():
                patterns = [clause.pattern for clause in top.clauses]
                while patterns:
                    pattern = patterns.pop()
                    if isinstance(pattern, syntax.VarPattern):
                        bound.add(pattern.var)
                    elif isinstance(pattern, syntax.ConstructorPattern | syntax.TuplePattern):
                        patterns += pattern.fields
            case _:
                pass
        stack += reversed(syntax.children(top))
    return tuple(var for var in found if var not in bound)
