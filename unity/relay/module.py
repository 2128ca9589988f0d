"""Modules as scripts build them; other than ours, they can be changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from unity.errors import UnityError
from unity.frontend.relay import syntax
from unity.frontend.relay.read import read_relay
from unity.frontend.relay.syntax import TypeDeclaration
from unity.frontend.relay.text.printing import print_relay
from unity.ir.dtype import Array
from unity.transform import Precision

from .analysis import free_vars
from .declared.adt import Constructor, GlobalTypeVar, TypeData, type_data
from .expr import Expr, Function, GlobalVar, Var, wrap
from .places import here


class IRModule:
    """A Relay module.

    Args:
        functions: Functions, by name or by `GlobalVar`.
        type_definitions: Declared types by name.
    """

    def __init__(
        self,
        functions: Mapping[str | GlobalVar, Expr] | None = None,
        type_definitions: Mapping[str, syntax.TypeDeclaration] | None = None,
    ) -> None:
        self._functions: dict[str, syntax.Function] = {}
        self._types = dict(type_definitions or {})
        self._params: Mapping[str, Array] = {}
        self.precision: Precision = "f32"
        for name, function in (functions or {}).items():
            self[name] = function

    @classmethod
    def of(cls, module: syntax.Module) -> IRModule:
        """The module that a file holds."""
        found = cls(type_definitions=module.types)
        found._functions = dict(module.functions)
        found._params = module.params
        return found

    @classmethod
    def from_expr(
        cls, expr: Expr, functions: Mapping[str | GlobalVar, Expr] | None = None
    ) -> IRModule:
        """A module of a function, or of one of the variables that an expression reads."""
        if not isinstance(expr, Function):
            expr = Function([v for v in free_vars(expr) if isinstance(v, Var)], expr)
        found = cls(functions)
        found["main"] = expr
        return found

    def with_precision(self, precision: Precision) -> IRModule:
        """It, to be compiled in a precision."""
        found = IRModule.of(self.syntax)
        found.precision = precision
        return found

    def rewritten(self, rewrite: Callable[[syntax.Module], syntax.Module]) -> IRModule:
        """It changed by a pass; itself if nothing changed."""
        before = self.syntax
        after = rewrite(before)
        if after is before:
            return self
        found = IRModule.of(after)
        found.precision = self.precision
        return found

    @property
    def syntax(self) -> syntax.Module:
        """It as syntax, with values of parameters that it was read with."""
        return syntax.Module(self._functions, self._types, self._params, file="<script>")

    @property
    def functions(self) -> dict[GlobalVar, Expr]:
        """Its functions."""
        return {GlobalVar(name): wrap(f) for name, f in self._functions.items()}

    def get_global_vars(self) -> list[GlobalVar]:
        """What its functions are called."""
        return [GlobalVar(name) for name in self._functions]

    def get_global_var(self, name: str) -> GlobalVar:
        """What a function is called."""
        self[name]
        return GlobalVar(name)

    def __getitem__(self, name: str | GlobalVar) -> Function:
        key = name.name_hint if isinstance(name, GlobalVar) else name
        if key not in self._functions:
            raise UnityError(
                f"the module has no function {key!r}",
                here(),
                f"it has {', '.join(self._functions)}",
            )
        found = wrap(self._functions[key])
        assert isinstance(found, Function)
        return found

    def add_type(self, name: str, declaration: TypeDeclaration) -> None:
        """Declare a type."""
        self._types[name] = declaration

    @property
    def type_definitions(self) -> dict[str, TypeDeclaration]:
        """The types that it declares, by name."""
        return dict(self._types)

    def get_type(self, name: str) -> list[GlobalTypeVar | Constructor]:
        """A declared type's name, and its constructors."""
        if name not in self._types:
            raise UnityError(
                f"the module has no type {name!r}",
                here(),
                f"it has {', '.join(self._types) or 'none; relay.prelude.Prelude(mod) adds some'}",
            )
        found = type_data(self._types[name])
        return [found.header, *found.constructors]

    def get_global_type_var(self, name: str) -> GlobalTypeVar:
        """What a declared type is called."""
        header = self.get_type(name)[0]
        assert isinstance(header, GlobalTypeVar)
        return header

    def __setitem__(self, name: str | GlobalVar | GlobalTypeVar, function: Expr | TypeData) -> None:
        if isinstance(function, TypeData):
            self.add_type(function.header.name_hint, function.declaration)
            return
        if isinstance(name, GlobalTypeVar):
            raise UnityError(f"{name.name_hint} is declared by a TypeData", here())
        key = name.name_hint if isinstance(name, GlobalVar) else name
        if not isinstance(function, Function):
            function = Function([v for v in free_vars(function) if isinstance(v, Var)], function)
        self._functions[key] = function.function

    update_func = __setitem__

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def astext(self, show_meta_data: bool = True) -> str:
        """Relay's text, which `relay.parse`, `unity.load` and ``unity migrate`` read."""
        return print_relay(self.syntax, constants=show_meta_data)

    def __str__(self) -> str:
        return self.astext(show_meta_data=False)

    def show(self) -> None:
        """Print it."""
        print(self)


def parse(source: str) -> IRModule:
    """The module of Relay's text, or of a file of any kind that `unity.load` takes."""
    return IRModule.of(read_relay(source))


fromtext = parse


def load_json(text: str) -> IRModule:
    """The module of JSON of ``tvm.ir.save_json``."""
    return IRModule.of(read_relay(text.encode()))


def load(path: str | Path, params: str | Path | None = None) -> IRModule:
    """The module of a file, with values for its parameters."""
    return IRModule.of(read_relay(Path(path), params))
