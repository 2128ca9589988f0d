"""Models compiled as scripts ask for it: `build`, `create_executor`, and what they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from logging import getLogger
from pathlib import Path
from typing import Any

import numpy as np

import unity
from unity.errors import UnityError
from unity.frontend.relay import syntax
from unity.frontend.relay.translator import translate
from unity.frontend.relay.wishes import wishes
from unity.ir import graph
from unity.ir.dtype import Array
from unity.ir.module import IRModule as OurModule
from unity.ir.visit import substitute_vars
from unity.runtime.artifact.naming import SUFFIX
from unity.runtime.executable import Executable
from unity.transform import Precision, pipeline

from .declared.by_form import ByForm, takes_declared
from .declared.container import given, with_form
from .expr import Expr, Function, wrap
from .graph_executor import GraphModule
from .module import IRModule
from .nd import Device, NDArray
from .pass_context import PassContext
from .passes.rewriting import rewritten
from .places import here
from .target import target_of

log = getLogger("unity")
Params = Mapping[str, Array]


@dataclass(frozen=True)
class Runner:
    """What ``lib["default"](device)`` gives: an executable, for `GraphModule`."""

    executable: Executable


class Library:
    """What `build` gives.

    Attributes:
        executable: The compiled model.
        form: Of a result that holds values of declared types, its parts
            (`unity.frontend.relay.examples.form_of`).
    """

    def __init__(
        self, executable: Executable, name: str = "default", form: Sequence[str] = ()
    ) -> None:
        self.executable = executable
        self.form = tuple(form)
        self._name = name

    def __getitem__(self, name: str) -> Callable[..., Runner]:
        if name not in ("default", self._name):
            raise UnityError(
                f"the library has no {name!r}",
                hint='lib["default"](dev) goes into graph_executor.GraphModule; '
                "lib.executable is Unity's, which can do more",
            )
        return lambda *devices: Runner(self.executable)

    def __iter__(self) -> Iterator[object]:
        """``graph, lib, params = relay.build(...)``, as it was before TVM 0.8."""
        return iter(("", self, {}))

    def get_lib(self) -> Library:
        """Itself: code and weights are one file."""
        return self

    @property
    def lib(self) -> Library:
        """Itself."""
        return self

    def get_params(self) -> dict[str, NDArray]:
        """Nothing: weights are in the executable."""
        return {}

    def get_graph_json(self) -> str:
        """Refuse: there is no graph any more.

        Raises:
            UnityError: Always.
        """
        raise UnityError(
            "there is no graph's JSON: lib.export_library writes all that running needs",
            hint="print(lib.executable.ir()) shows the program",
        )

    def export_library(self, file_name: str | Path, *_: object, **__: object) -> Path:
        """Write the executable beside the name that a script gives, as ``.unity``.

        `tvm.runtime.load_module` of the script's name finds it. For C there is
        ``lib.executable.export_library("libnet.so")``.
        """
        path = Path(file_name).with_suffix(SUFFIX)
        self.executable.save(path)
        log.warning("%s is written as %s, which holds code, graph and weights", file_name, path)
        return path

    save = export_library


def load_module(path: str | Path, fmt: str = "") -> Library:
    """What `Library.export_library` wrote under a name.

    Raises:
        UnityError: It wrote nothing under it.
    """
    own = Path(path).with_suffix(SUFFIX)
    if not own.is_file():
        raise UnityError(
            f"there is no {own}: {path} must be exported anew",
            hint="relay.build the model here, then lib.export_library; "
            "code that TVM compiled can't be run",
        )
    return Library(unity.load(own))


def translated(
    module: object,
    params: Params | None = None,
    examples: Mapping[str, object] | None = None,
) -> OurModule:
    """A module of ours, of whatever scripts have: ours, Relay's, a function, an expression.

    Args:
        module: The model.
        params: Values for parameters of its entry; others are ignored, as TVM does.
        examples: Of inputs of declared types, how far they go.
    """
    values = {name: np.asarray(value) for name, value in (params or {}).items()}
    match module:
        case OurModule():
            return bound(module, values)
        case IRModule():
            source = module.syntax
        case Expr():
            source = IRModule.from_expr(module).syntax
        case graph.Function():
            return bound(OurModule({"main": module}), values)
        case _:
            raise UnityError(
                f"relay.build takes a module, got {type(module).__name__}", hint=SAVING
            )
    main = source.functions.get("main")
    known = {p.name for p in main.params} if main is not None else set[str]()
    own = {k: v for k, v in values.items() if k in known}
    return translate(source, params=own, examples=examples)


def bind_params_by_name(func: Any, params: Params) -> Any:
    """A function with constants in the places of some of its parameters.

    Args:
        func: It, of Relay or of a module that `relay.frontend` gave.
        params: Values by the parameters' names; those that it does not have are ignored.

    Raises:
        UnityError: It is no function.
    """
    if isinstance(func, graph.Function):
        values = {name: np.asarray(value) for name, value in params.items()}
        return bound(OurModule({"main": func}), values)["main"]
    if not isinstance(func, Function):
        raise UnityError("bind_params_by_name takes a function", here(), 'mod["main"]')
    old = func.function
    bound_to: dict[syntax.Expr, syntax.Expr] = {}
    for param in old.params:
        if param.name in params:
            array = np.array(params[param.name], order="C")
            array.flags.writeable = False
            bound_to[param] = syntax.Constant(array, param.span)
    made = rewritten(old, lambda _, node: bound_to.get(node, node))
    rest = tuple(p for p in old.params if p not in bound_to)
    return wrap(replace(made, params=rest)) if bound_to else func


SAVING = """an object of an installed TVM is saved there, and loaded here:
  open("model.relay", "w").write(mod.astext(show_meta_data=True))
  open("model.params", "wb").write(relay.save_param_dict(params))
  mod = unity.relay.load("model.relay", "model.params")  # here"""


def bound(module: OurModule, values: Params) -> OurModule:
    """A module whose entry has constants for some of its parameters."""
    main = module["main"]
    assert isinstance(main, graph.Function)
    own = main.attrs.get("input_names")
    called = own if isinstance(own, tuple) else tuple(p.name for p in main.params)
    pairs = list(zip(called, main.params, strict=True))
    given = {p: graph.Constant(values[str(n)], p.name) for n, p in pairs if n in values}
    if not given:
        return module
    rest = tuple(p for p in main.params if p not in given)
    names = tuple(str(n) for n, p in pairs if p not in given)
    attrs = main.attrs.with_(input_names=names)
    made = replace(main, params=rest, body=substitute_vars(main.body, given), attrs=attrs)
    return OurModule({**module.functions, "main": made}, module.attrs)


def build(
    ir_mod: object,
    target: object = None,
    target_host: object = None,
    executor: object = None,
    runtime: object = None,
    workspace_memory_pools: object = None,
    constant_memory_pools: object = None,
    params: Params | None = None,
    mod_name: str = "default",
) -> Library:
    """Compile a model.

    Args:
        ir_mod: A module, of Relay or of `relay.frontend`; a function.
        target: As for TVM: ``"llvm -mcpu=..."``; this machine if not given.
        target_host: Nothing here.
        executor: Nothing here: there is one.
        runtime: Nothing here.
        workspace_memory_pools: Nothing here.
        constant_memory_pools: Nothing here.
        params: Values for parameters of the entry, by name.
        mod_name: What ``lib[...]`` is called besides "default".
    """
    return built(ir_mod, target, params, mod_name=mod_name)


def built(
    ir_mod: object,
    target: object = None,
    params: Params | None = None,
    examples: Mapping[str, object] | None = None,
    mod_name: str = "default",
) -> Library:
    """Compile a model, for values of declared types that go as far as examples."""
    module = translated(ir_mod, params, examples)
    precision = _precision(ir_mod)
    machine = target_of(target)
    chosen = PassContext.current().changed(pipeline(machine.kind, precision))
    executable = unity.compile(module, machine, pipeline=chosen, resolve=wishes(module) or None)
    main = module["main"]
    form = main.attrs.get("tree_result", ()) if isinstance(main, graph.Function) else ()
    assert isinstance(form, tuple)
    return Library(executable, mod_name, tuple(map(str, form)))


def _precision(module: object) -> Precision:
    """That which `ToMixedPrecision` left a module with."""
    if isinstance(module, IRModule):
        return module.precision
    narrowed = isinstance(module, OurModule) and module.attrs.get("precision") == "f16"
    return "f16" if narrowed else "f32"


class Executor:
    """What `create_executor` gives: `evaluate` makes a function of a model."""

    def __init__(self, module: object, target: object, params: Params | None) -> None:
        self._module, self._target, self._params = module, target, params

    def evaluate(
        self, expr: Expr | None = None, binds: Params | None = None
    ) -> Callable[..., object]:
        """A function on arrays: that of the module's ``main``, or of an expression.

        One that takes lists or trees is compiled for each form of them that it is called with.
        """
        module = self._module if expr is None else expr
        params = {**(self._params or {}), **(binds or {})}
        program = when_called(module, self._target, params)
        return lambda *args, **named: called(program, args, named)


def when_called(module: object, target: object, params: Params) -> Library | ByForm:
    """A model compiled now; one that takes lists or trees is compiled when it is called."""
    if isinstance(module, Expr):
        module = IRModule.from_expr(module)
    if isinstance(module, IRModule) and takes_declared(module.syntax, tuple(params)):
        return ByForm(module.syntax, tuple(params), partial(built, module, target, params))
    return built(module, target, params)


def called(
    program: Library | ByForm, args: Sequence[object], named: Mapping[str, object]
) -> object:
    """What a model gives: an array, a list of them of a tuple, `ADT` of a declared type."""
    if isinstance(program, ByForm):
        values = program.named(args, named)
        library = program.library(values)
        module = GraphModule(library)
        module.set_input(None, None, **values)
    else:
        library, module = program, GraphModule(program)
        for place, value in enumerate(args):
            module.set_input(place, value)
        module.set_input(None, None, **named)
    module.run()
    return with_form(module.result, library.form) if library.form else given(module.result)


def create_executor(
    kind: str = "debug",
    mod: object = None,
    device: Device | None = None,
    target: object = "llvm",
    params: Params | None = None,
) -> Executor:
    """An executor; all kinds (debug, graph, vm, aot) are one here."""
    return Executor(mod, target, params)
