"""What a model takes, before it is compiled."""

from __future__ import annotations

from pathlib import Path

from unity.codegen.vm.specs import Scope
from unity.compiler import load
from unity.ir.graph import Function

from .examples import read_examples
from .feeds import Inputs
from .options import Options


def model_inputs(path: Path, options: Options) -> Inputs:
    """What the main function of a model takes."""
    function = load(path, params=options.params, examples=read_examples(options.examples))["main"]
    assert isinstance(function, Function)
    scope = Scope()
    names = tuple(p.name for p in function.params)
    specs = tuple(scope.spec(p.type) for p in function.params)
    own = function.attrs.get("input_names", ())
    told = tuple(str(n) for n in own) if isinstance(own, tuple) else ()
    return Inputs(names, specs, scope.symbols, told or names)
