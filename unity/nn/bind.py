"""Parameters of a program given their numbers.

`Module.export` records in the function's attribute ``parameters`` which parameter each input is, as
pairs (input, parameter): names of inputs are made identifiers and unique, so that they don't tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unity.arguments import public
from unity.errors import UnityError
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.graph import Constant, Expr, Function, Var
from unity.ir.module import IRModule
from unity.ir.visit_graph import substitute_vars
from unity.runtime.host_forms.forms import forms_of
from unity.transform.graph.signature.callers import PARAMETERS

from .parameter import numbers_for


@public
def bind(module: IRModule, state: Mapping[str, object], function: str = "main") -> IRModule:
    """A program with some inputs of a function as constants.

    Args:
        module: The program.
        state: Arrays (numpy's, torch's, all with DLPack or ``__array__``) by name: that of a
            parameter, as `Module.state` gives it and ``Module.export(bind=False)`` recorded it;
            that which an imported model had for the input; or the input's own. They are copied.
        function: Which function.

    Raises:
        UnityError: It has no such function or input, an array doesn't fit its type, or two are for
            one input.
    """
    found = module.graph_functions().get(function)
    if found is None:
        known = ", ".join(module.graph_functions()) or "none"
        raise UnityError(f"the module has no graph function {function!r}", hint=f"it has {known}")
    _require_no_places(found, function)
    inputs = _names(found, function)
    values: dict[Var, Expr] = {}
    names: dict[Var, str] = {}
    for name, given in state.items():
        param = inputs.get(name)
        if param is None:
            raise UnityError(
                f"{function} has no input {name!r}", hint=f"it has {', '.join(inputs)}"
            )
        if param in names:
            raise UnityError(
                f"{name!r} and {names[param]!r} are the same input of {function}",
                hint="give it one array",
            )
        names[param] = name
        values[param] = Constant(numbers_for(param.type, given, name), name)
    rest = tuple(p for p in found.params if p not in values)
    attrs = _attrs_of(found, {p.name for p in values})
    changed = substitute_vars(replace(found, params=rest, attrs=attrs), values)
    assert isinstance(changed, Function)
    return module.with_({function: changed})


def recorded(names: Mapping[str, str]) -> Attrs:
    """The attributes of a function some of whose inputs are parameters.

    Args:
        names: The parameters' names by those of the inputs.
    """
    return Attrs({PARAMETERS: tuple(names.items())} if names else {})


def _names(of: Function, function: str) -> dict[str, Var]:
    """The inputs under all names that they have; a parameter's goes before an input's.

    Raises:
        UnityError: The function's attribute is no record of parameters.
    """
    by_name = {p.name: p for p in of.params}
    own = of.attrs.get("input_names")
    imported = own if isinstance(own, tuple) else ()
    found = {**by_name, **{str(n): p for n, p in zip(imported, of.params, strict=False)}}
    for name, parameter in _record(of, function):
        if name not in by_name:
            raise UnityError(
                f"{function} has no input {name!r}, which its attribute {PARAMETERS!r} calls the "
                f"parameter {parameter!r}",
                hint=f"rename it there as well; the inputs are {', '.join(by_name)}",
            )
        found[parameter] = by_name[name]
    return found


def _record(of: Function, function: str) -> list[tuple[str, str]]:
    """Pairs of an input's name and its parameter's."""
    pairs: list[tuple[str, str]] = []
    given = of.attrs.get(PARAMETERS, ())
    for pair in given if isinstance(given, tuple) else (given,):
        match pair:
            case (str() as name, str() as parameter):
                pairs.append((name, parameter))
            case _:
                raise UnityError(
                    f"{function}: the attribute {PARAMETERS!r} holds {pair!r}",
                    hint="pairs of texts: (input, parameter)",
                )
    return pairs


def _attrs_of(of: Function, gone: set[str]) -> Attrs:
    """The attributes of a function that loses inputs."""
    changed: dict[str, AttrValue] = {}
    own = of.attrs.get("input_names")
    if isinstance(own, tuple):
        kept = [n for n, p in zip(own, of.params, strict=False) if p.name not in gone]
        changed["input_names"] = tuple(kept)
    changed[PARAMETERS] = tuple(pair for pair in _record(of, "") if pair[0] not in gone)
    empty = [name for name, value in changed.items() if not value]
    return of.attrs.with_(**changed).without(*empty)


def _require_no_places(of: Function, function: str) -> None:
    """Refuse a function whose attributes count its inputs: fewer would mean others.

    Raises:
        UnityError: It is such a one.
    """
    if of.attrs.get("aliases") or forms_of(of.attrs):
        told = [k for k in of.attrs if k == "aliases" or forms_of(Attrs({k: of.attrs[k]}))]
        raise UnityError(
            f"the inputs of {function} are told by place in its attributes {', '.join(told)}",
            hint="give the numbers when it is called",
        )
