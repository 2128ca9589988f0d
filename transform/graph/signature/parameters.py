"""The names of a function's inputs, and its attributes that speak of inputs by place.

`Module.export` of `unity.nn` records in the attribute ``parameters`` which parameter each input
is, as pairs (input, parameter): names of inputs are made identifiers and unique, so that they don't
tell. Importers record the names that inputs had in ``input_names``, ``num_input`` counts those that
are no parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unity.errors import UnityError
from unity.ir.attrs import Attrs, AttrValue
from unity.ir.graph import Function, Var
from unity.runtime.host_forms.forms import forms_of

PARAMETERS = "parameters"
"""The attribute that says which inputs are parameters."""
INPUT_NAMES = "input_names"
"""The attribute that says what inputs are called outside."""
NUM_INPUT = "num_input"
"""The attribute that counts the inputs in front of the parameters."""


def recorded(names: Mapping[str, str]) -> Attrs:
    """The attributes of a function some of whose inputs are parameters.

    Args:
        names: The parameters' names by those of the inputs.
    """
    return Attrs({PARAMETERS: tuple(names.items())} if names else {})


def inputs_by_name(f: Function, name: str) -> dict[str, Var]:
    """The inputs under all names that they have; a parameter's goes before an input's.

    Args:
        f: The function.
        name: What messages call it.

    Raises:
        UnityError: The function's attribute is no record of parameters.
    """
    by_name = {p.name: p for p in f.params}
    own = f.attrs.get(INPUT_NAMES)
    outside = own if isinstance(own, tuple) else ()
    found = {**by_name, **{str(n): p for n, p in zip(outside, f.params, strict=False)}}
    for given, parameter in _record(f, name):
        if given not in by_name:
            raise UnityError(
                f"{name} has no input {given!r}, which its attribute {PARAMETERS!r} calls the "
                f"parameter {parameter!r}",
                hint=f"rename it there as well; the inputs are {', '.join(by_name)}",
            )
        found[parameter] = by_name[given]
    return found


def told_by_place(f: Function) -> list[str]:
    """The attributes that tell of inputs by place and are not followed: fewer would mean others."""
    return [k for k, v in f.attrs.items() if (k == "aliases" and v) or forms_of(Attrs({k: v}))]


def with_params(f: Function, params: tuple[Var, ...]) -> Function:
    """A function with other parameters, and attributes that say of these what they said."""
    kept = [p for p in params if p in f.params]
    changed: dict[str, AttrValue] = {}
    names = {p.name for p in kept}
    changed[PARAMETERS] = tuple(pair for pair in _record(f, "") if pair[0] in names)
    own = f.attrs.get(INPUT_NAMES)
    if isinstance(own, tuple):
        outside = dict(zip(f.params, own, strict=False))
        changed[INPUT_NAMES] = tuple(outside.get(p, p.name) for p in params)
    count = f.attrs.get(NUM_INPUT)
    if isinstance(count, int):
        changed[NUM_INPUT] = sum(p in kept for p in f.params[:count])
    empty = [name for name, value in changed.items() if value == ()]
    return replace(f, params=params, attrs=f.attrs.with_(**changed).without(*empty))


def _record(f: Function, name: str) -> list[tuple[str, str]]:
    """Pairs of an input's name and its parameter's."""
    pairs: list[tuple[str, str]] = []
    given = f.attrs.get(PARAMETERS, ())
    for pair in given if isinstance(given, tuple) else (given,):
        match pair:
            case (str() as own, str() as parameter):
                pairs.append((own, parameter))
            case _:
                raise UnityError(
                    f"{name}: the attribute {PARAMETERS!r} holds {pair!r}",
                    hint="pairs of texts: (input, parameter)",
                )
    return pairs
