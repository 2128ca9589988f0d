"""LowerLibraryCalls: calls of library functions become calls of the kernels that make them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from unity.errors import UnityError
from unity.ir.graph import CallLibrary, CallTir, Expr, FunctionRef, Var
from unity.ir.lattice import atom_type
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.types import TensorType, Type

from ...passes import Context, Pass
from ..lower.match_kernel_calls import matched_call
from ..names import Names
from ..rewriter import BodyRewriter
from ..symbols import is_concrete
from .library import library_function


@dataclass(frozen=True, slots=True)
class LowerLibraryCalls(Pass):
    """Replaces every `CallLibrary` by a `CallTir` of the kernel that the function's rule makes.

    From here on a library's function is a kernel like any other: its destination lies in the
    arena, native code calls it directly, an exported artifact links it.

    >>> from unity.script import parse, print_module
    >>> from .library import LibraryFunction, fixed_kernel, register_library_function
    >>> kernel = parse('''
    ... n = dim("n")
    ... @script.prim_func
    ... def cosines(x: f32[Buffer, n], y: f32[Buffer, n]) -> None:
    ...     T.evaluate(T.call_extern("fastmath.cosf_n", n, T.address_of(x[0]), T.address_of(y[0])))
    ... ''').prim_funcs()["cosines"]
    >>> import numpy
    >>> _ = register_library_function(
    ...     LibraryFunction("fastmath.cosines", fixed_kernel(kernel), numpy.cos)
    ... )
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 8]) -> f32[Tensor, 8]:
    ...     y = R.call_library("fastmath.cosines", (x,), out=f32[Tensor, 8])
    ...     return y
    ... ''')
    >>> after = LowerLibraryCalls()(before, Context())
    >>> print(print_module(after.without("cosines")), end="")
    @script.function
    def main(x: f32[Tensor, 8]) -> f32[Tensor, 8]:
        y = R.call_tir(cosines, (x,), out=f32[Tensor, 8])
        return y
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """All graph functions, with one table of kernels."""
        kernels = _Kernels(Names(module))
        functions = {
            name: _Lowerer(module, kernels).function(f)
            for name, f in module.graph_functions().items()
        }
        return module.with_({**functions, **kernels.made})


@dataclass(slots=True)
class _Kernels:
    """Carries the kernels made so far, by what they are."""

    names: Names
    made: dict[str, PrimFunc] = field(default_factory=dict[str, PrimFunc])
    known: dict[Hashable, str] = field(default_factory=dict[Hashable, str])


class _Lowerer(BodyRewriter):
    """Carries the kernels from function to function."""

    def __init__(self, module: IRModule, kernels: _Kernels) -> None:
        super().__init__(module)
        self.kernels = kernels

    def rewrite(self, var: Var, value: Expr) -> Expr:
        if not isinstance(value, CallLibrary):
            return value
        function = library_function(value.symbol)
        inputs = [self.tensor(value, atom_type(a)) for a in value.args]
        outputs = [self.tensor(value, t) for t in value.out]
        try:
            func = function.kernel(inputs, outputs, value.attrs)
        except UnityError as error:
            raise UnityError(f"{value.symbol}: {error.message}", value.span, error.hint) from None
        func = PrimFunc(func.params, func.body, func.attrs.with_(library=function.name), func.span)
        name = self.kernels.known.get(func)
        if name is None:
            name = self.kernels.names.fresh(value.symbol.rpartition(".")[2])
            self.kernels.known[func] = name
            self.kernels.made[name] = func
        call = CallTir(FunctionRef(name, value.span), value.args, value.out, span=value.span)
        return matched_call(self, call, func, value.symbol)

    def tensor(self, call: CallLibrary, t: Type | None) -> TensorType:
        """A tensor's type, which must be known."""
        if isinstance(t, TensorType) and is_concrete(t):
            return t
        raise UnityError(
            f"{call.symbol} takes tensors of known dtype and rank, got {t}",
            call.span,
            "give it a type by R.match_cast",
        )
