"""Scripts of Relay: the names that they know, on Unity.

A script changes its imports alone::

    from unity import relay                                  # from tvm import relay
    from unity.relay import autotvm, graph_executor, tvm    # import tvm, ...

Modules are built of Relay's syntax (`unity.frontend.relay.syntax`) and translated when they are
compiled. Each name is imported when it is first used; the operators are made of the schema.
"""

from __future__ import annotations

import typing
from importlib import import_module

from unity.errors import UnityError

from .imports import install

_HOMES = {
    "expr": (
        "Call", "Constant", "Expr", "Function", "GlobalVar", "If", "Let", "Op", "Tuple",
        "TupleGetItem", "TupleWrapper", "Var", "const", "var",
    ),
    "functor": ("ExprFunctor", "ExprMutator", "ExprVisitor"),
    "types": ("Any", "FuncType", "TensorType", "TupleType", "scalar_type"),
    "module": ("IRModule", "fromtext", "load", "load_json", "parse"),
    "scope_builder": ("ScopeBuilder",),
    "building": ("build", "create_executor", "load_module"),
    "pass_context": ("PassContext", "build_config"),
    "graph_executor": ("GraphModule", "load_param_dict"),
    "saving": ("save_param_dict",),
    "logs.tuners": ("auto_scheduler", "autotvm", "meta_schedule"),
    "target": ("Target",),
    "declared.adt": (
        "Clause", "Constructor", "GlobalTypeVar", "Match", "PatternConstructor", "PatternTuple",
        "PatternVar", "PatternWildcard", "RefCreate", "RefRead", "RefWrite", "TypeData",
    ),
}  # fmt: skip
_MODULES = (
    "analysis",
    "frontend",
    "graph_executor",
    "logs",
    "nd",
    "testing",
    "transform",
    "tvm",
    "vm",
)
_ALIASES = {
    "adt": "declared.adt",
    "build_module": "building",
    "expr": "expr",
    "expr_functor": "functor",
    "function": "expr",
    "prelude": "declared.prelude",
    "ty": "types",
}
"""Modules of TVM's, and ours that hold the same names."""
_REFUSED = {
    "bind": "relay.build_module.bind_params_by_name binds parameters",
    "backend": "nothing of TVM's lowering is there; unity.pipeline holds the passes",
    "collage": "resolve='measure' chooses who computes what",
    "dataflow_pattern": "unity.rewrite_rule(before, after) finds and replaces, and checks it; "
    "unity.transform.pattern finds",
    "quantize": "models are quantized elsewhere; qnn operators are read",
}
"""What scripts may ask for and there is not, with what to do instead."""
_RENAMED = {"TypeVar": "type_var", "TypeCall": "type_call"}
"""What stands in `declared.adt` as a function."""
_FOUND = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> typing.Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _FOUND:
        return getattr(import_module(f".{_FOUND[name]}", __name__), name)
    if name in _RENAMED:
        return getattr(import_module(".declared.adt", __name__), _RENAMED[name])
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _ALIASES:
        return import_module(f".{_ALIASES[name]}", __name__)
    if name in _REFUSED:
        raise UnityError(f"relay.{name} is not there", hint=_REFUSED[name])
    root = import_module(".operators", __name__).ROOT
    return root if name == "op" else getattr(root, name)


def __dir__() -> list[str]:
    return sorted((*_FOUND, *_MODULES, *dir(import_module(".operators", __name__).ROOT)))


install()
