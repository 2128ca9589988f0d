"""What a model takes, before it is compiled."""

from __future__ import annotations

from pathlib import Path

from unity.codegen.vm.specs import Scope
from unity.compilation import main_name
from unity.ir.graph import Function

from .feeds import Inputs
from .model import read_model
from .options import Options


def model_inputs(path: Path, options: Options) -> Inputs:
    """What the main function of a model takes."""
    module = read_model(path, options)
    function = module[main_name(module)]
    assert isinstance(function, Function)
    scope = Scope()
    names = tuple(p.name for p in function.params)
    specs = tuple(scope.spec(p.type) for p in function.params)
    own = function.attrs.get("input_names", ())
    told = tuple(str(n) for n in own) if isinstance(own, tuple) else ()
    return Inputs(names, specs, scope.symbols, told or names)
