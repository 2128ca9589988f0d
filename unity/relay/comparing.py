"""Whether two programs are the same: compared as what they are translated to."""

from __future__ import annotations

from dataclasses import replace

from unity.errors import UnityError
from unity.frontend.relay import syntax
from unity.frontend.relay.translator import translate
from unity.ir.attrs import NO_ATTRS
from unity.ir.equality import first_difference
from unity.ir.module import IRModule as Translated

from .expr import Expr
from .module import IRModule
from .nodes import free
from .places import here


def structural_equal(lhs: Expr | IRModule, rhs: Expr | IRModule) -> bool:
    """Whether two programs compute the same in the same way, whatever their variables are called.

    They are compared as they are translated; what they read must be declared with types.
    """
    return _difference(lhs, rhs) is None


def assert_structural_equal(lhs: Expr | IRModule, rhs: Expr | IRModule) -> None:
    """Raise where two programs differ, and say where.

    Raises:
        UnityError: They do.
    """
    found = _difference(lhs, rhs)
    if found is not None:
        raise UnityError(f"the programs differ: {found}", here())


def _difference(lhs: Expr | IRModule, rhs: Expr | IRModule) -> object:
    return first_difference(_translated(lhs), _translated(rhs))


def _translated(program: Expr | IRModule) -> Translated:
    """A program without the names of its inputs."""
    found = translate(_module(program))
    return Translated({n: replace(f, attrs=NO_ATTRS) for n, f in found.graph_functions().items()})


def _module(program: Expr | IRModule) -> syntax.Module:
    if isinstance(program, IRModule):
        return program.syntax
    node = program.node
    if not isinstance(node, syntax.Function):
        node = syntax.Function(tuple(free(node)), node, span=node.span)
    return syntax.Module({"main": node}, file="<script>")
