"""LiftTransformParams: what is computed of parameters alone, by a function of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from unity.errors import UnityError
from unity.ir.dims import Symbol
from unity.ir.graph import BindingBlock, Body, Expr, Function, Tuple, Var, VarBinding
from unity.ir.module import IRModule
from unity.ir.types import TensorType, TupleType
from unity.ir.visit import free_vars, type_symbols, walk_bindings
from unity.ir.visiting.visit_graph import substitute_symbols

from ...passes import Context, Pass
from ..purity import is_pure
from ..rewriter import function_symbols, is_atom
from ..uses import variables
from .callers import function_to_change
from .parameters import NUM_INPUT, with_params


@dataclass(frozen=True, slots=True)
class LiftTransformParams(Pass):
    """Puts what depends on parameters alone into a function ``<function>_transform_params``.

    It takes the parameters one by one and gives a tuple, which the function takes in their place:
    ``main(x, *main_transform_params(w, b))`` is what ``main(x, w, b)`` was. Parameters that the
    rest reads as they are, are in the tuple as well. Of what has a size known only when it runs
    nothing is lifted, nor of what may not be computed once more or less often (effects).

    Attributes:
        function: Which function; none calls it.
        inputs: How many inputs, the first ones, are given anew at each run; parameters are those
            behind them. None stands for the function's attribute ``num_input``, Relax's.

    Raises:
        UnityError: There is no such function, nothing says which of its inputs are parameters, or
            there is a function called as the new one.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 2, 4], w: f32[Tensor, 8, 4]) -> f32[Tensor, 2, 8]:
    ...     wt = R.permute_dims(w)
    ...     y = R.matmul(x, wt)
    ...     return y
    ... ''')
    >>> print(print_module(LiftTransformParams(inputs=1)(before, Context())), end="")
    @script.function
    def main(x: f32[Tensor, 2, 4], wt: f32[Tensor, 4, 8]) -> f32[Tensor, 2, 8]:
        y = R.matmul(x, wt)
        return y
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main_transform_params(w: f32[Tensor, 8, 4]) -> R.Tuple(f32[Tensor, 4, 8]):
        wt = R.permute_dims(w)
        transformed = (wt,)
        return transformed
    """

    function: str = "main"
    inputs: int | None = None

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """One function becomes two, if there is anything to lift."""
        f = function_to_change(module, self.function, self.name)
        count = self._inputs(f)
        lifted = _liftable(f, f.params[count:], module)
        if not lifted:
            return module
        name = f"{self.function}_transform_params"
        if name in module:
            raise UnityError(f"{self.name}: the module has a {name!r} already")
        rest, transform = _parted(f, count, lifted)
        return module.with_({self.function: rest, name: transform})

    def _inputs(self, f: Function) -> int:
        count = f.attrs.get(NUM_INPUT) if self.inputs is None else self.inputs
        if isinstance(count, bool) or not isinstance(count, int):
            raise UnityError(
                f"{self.name}: nothing says which inputs of {self.function} are parameters",
                hint="LiftTransformParams(inputs=1) says that all behind the first one are",
            )
        if not 0 <= count <= len(f.params):
            raise UnityError(
                f"{self.name}: {self.function} takes {len(f.params)} inputs, not {count} and more"
            )
        return count


def _top(f: Function) -> Iterator[tuple[BindingBlock, VarBinding]]:
    """The bindings that stand in no branch or loop."""
    for block in f.body.blocks:
        for binding in block.bindings:
            if isinstance(binding, VarBinding):
                yield block, binding


def _liftable(f: Function, params: Iterable[Var], module: IRModule) -> dict[Var, VarBinding]:
    """What depends on parameters alone; what of it the rest reads is a tensor."""
    given = {p for p in params if not type_symbols(p.type)}
    sizes = dict.fromkeys(function_symbols(f), 1)
    movable = [b for _, b in _top(f) if _may_move(b, module, sizes)]
    banned = set[Var]()
    while True:
        found: dict[Var, VarBinding] = {}
        known = set(given)
        for binding in movable:
            reads = free_vars(binding.value)
            if reads <= known and binding.var not in banned:
                known.add(binding.var)
                if not reads.isdisjoint(given) or not reads.isdisjoint(found):
                    found[binding.var] = binding
        wanted = [v for v in _read_by_rest(f, found) if not _is_tensor(v) and v in found]
        if not wanted:
            return found
        banned.update(wanted)


def _may_move(binding: VarBinding, module: IRModule, sizes: dict[Symbol, int]) -> bool:
    """Whether an expression gives the same elsewhere: it is pure, and names no size."""
    if is_atom(binding.value) or not is_pure(binding.value, module):
        return False
    body = Body((BindingBlock((binding,)),), binding.var)
    inner = walk_bindings(body)
    if any(isinstance(b.value, Function) or type_symbols(b.var.type) for b in inner):
        return False
    return not sizes or substitute_symbols(binding.value, sizes) is binding.value


def _is_tensor(var: Var) -> bool:
    return isinstance(var.type, TensorType)


def _read_by_rest(f: Function, lifted: dict[Var, VarBinding]) -> list[Var]:
    """What a function reads outside what is lifted, in order, each once."""
    found: dict[Var, None] = {}
    for block in f.body.blocks:
        for binding in block.bindings:
            if binding.var not in lifted:
                found.update(dict.fromkeys(variables(binding.value)))
    found.update(dict.fromkeys(variables(f.body.result)))
    return list(found)


def _parted(f: Function, count: int, lifted: dict[Var, VarBinding]) -> tuple[Function, Function]:
    """What is left of a function, and the one that computes what it takes instead."""
    read = _read_by_rest(f, lifted)
    params = f.params[count:]
    kept = [p for p in params if p in read or type_symbols(p.type)]
    given = [*kept, *(v for v in read if v in lifted)]
    blocks: list[BindingBlock] = []
    for block in f.body.blocks:
        bindings = tuple(b for b in block.bindings if b.var not in lifted)
        if len(bindings) == len(block.bindings):
            blocks.append(block)
        elif bindings:
            blocks.append(replace(block, bindings=bindings))
    body = replace(f.body, blocks=tuple(blocks))
    rest = replace(with_params(f, (*f.params[:count], *given)), body=body)
    needed, moved = set(given), list[VarBinding]()
    for _, binding in reversed([*_top(f)]):
        if binding.var in needed:  # what is lifted, and constants that it is made of
            moved.insert(0, binding)
            needed |= free_vars(binding.value)
    kind = TupleType(tuple(v.type for v in given))
    result = Var("transformed", kind)
    moved.append(VarBinding(result, Tuple(tuple[Expr, ...](given))))
    return rest, Function(params, Body((BindingBlock(tuple(moved)),), result), kind)
