"""FuseReaders: what is computed of a product point by point is done in its register tile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from unity.ir.graph import (
    Binding,
    BindingBlock,
    Body,
    CallTir,
    Function,
    FunctionRef,
    TupleGet,
    Var,
    VarBinding,
)
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.types import TensorType, TupleType
from unity.ir.visiting.visit_graph import map_bodies

from ...passes import Context, Pass
from ..names import Names
from ..uses import count_uses, variables
from .groups import INJECTIVE, LEVELS, OUT_FUSABLE
from .inline_producers import inline_producers
from .merge_kernels import merge
from .primitive_functions import Primitives

MOST = 16
"""Kernels that are joined to one, at most."""


@dataclass(frozen=True, slots=True)
class FuseReaders(Pass):
    """Joins a product's kernel and those that alone read its result, where one tile does for all.

    `FuseOps` gives a group one result; a cell's step has several (its states), all made of the same
    gates. The kernels become one with as many results as others need, if its stages fit into the
    register tile of the product (`reads_in_tile`): gates are then never in memory.

    >>> from unity.script import parse, print_module
    >>> import numpy as np
    >>> from .fuse_ops import FuseOps
    >>> from .fuse_tir import FuseTir
    >>> from unity.transform.graph import LegalizeOps
    >>> from unity.transform.graph import PackWeights
    >>> module = parse('''
    ... @script.function
    ... def main(
    ...     x: f32[Tensor, 1, 8], c: f32[Tensor, 1, 16]
    ... ) -> R.Tuple(f32[Tensor, 1, 16], f32[Tensor, 1, 16]):
    ...     with R.dataflow():
    ...         gates = R.matmul(x, R.const("weight"))
    ...         i = R.sigmoid(R.strided_slice(gates, axes=(1,), begin=(0,), end=(16,)))
    ...         o = R.sigmoid(R.strided_slice(gates, axes=(1,), begin=(16,), end=(32,)))
    ...         cell = R.multiply(i, c)
    ...         out = R.multiply(o, R.tanh(cell))
    ...         both = (out, cell)
    ...     return both
    ... ''', {"weight": np.ones((8, 32), np.float32)})
    >>> for step in (PackWeights(), LegalizeOps(), FuseOps(), FuseTir()):
    ...     module = step(module, Context())
    >>> def calls(module):
    ...     text = print_module(module.without(*module.prim_funcs()))
    ...     for line in text.splitlines():
    ...         if " = " in line:
    ...             print(line.strip()[:59])
    >>> calls(module)
    gates = R.call_tir(matmul_packed, (x, R.const("weight_packe
    cell = R.call_tir(fused_strided_slice_sigmoid_multiply, (ga
    out = R.call_tir(fused_strided_slice_sigmoid_tanh_multiply,
    both = (out, cell)
    >>> calls(FuseReaders()(module, Context()))
    gates = R.call_tir(fused_matmul_packed_strided_slice_sigmoi
    cell = gates[0]
    out = gates[1]
    both = (out, cell)
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """All graph functions, with one table of kernels."""
        joiner = _Joiner(ctx, module, Primitives(Names(module), module.prim_funcs()))
        functions = {name: joiner.function(f) for name, f in module.graph_functions().items()}
        return joiner.module.with_(functions)


@dataclass(slots=True)
class _Joiner:
    """Carries the module with the joined kernels, and what groups became.

    Attributes:
        module: Where every kernel is that a binding calls: what reads a product may be what was
            joined to another before.
        made: The kernels of groups by name; None for a group that fits no tile.
    """

    ctx: Context
    module: IRModule
    primitives: Primitives
    made: dict[str, PrimFunc | None] = field(default_factory=dict[str, PrimFunc | None])
    uses: Counter[Var] = field(default_factory=Counter[Var])
    reads: dict[Var, list[Binding]] = field(default_factory=dict[Var, list["Binding"]])

    def function(self, f: Function) -> Function:
        """A function with groups called instead of their members."""
        self.uses = count_uses(f.body)
        body = self.body(f.body)
        return f if body is f.body else replace(f, body=body)

    def body(self, body: Body) -> Body:
        """Each dataflow block by itself, nested bodies included."""
        blocks = tuple(self.block(b) for b in body.blocks)
        same = all(a is b for a, b in zip(blocks, body.blocks, strict=True))
        return body if same else replace(body, blocks=blocks)

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block with its groups joined."""
        bindings: list[Binding] = [self.nested(b) for b in block.bindings]
        if block.dataflow:
            self.reads = {}
            for b in bindings:
                self.note(b)
            for head in [b for b in bindings if self.level(b) == OUT_FUSABLE]:
                bindings = self.joined(bindings, head)
        same = len(bindings) == len(block.bindings) and all(
            a is b for a, b in zip(bindings, block.bindings, strict=True)
        )
        return block if same else replace(block, bindings=tuple(bindings))

    def note(self, binding: Binding) -> None:
        """Note what a binding reads."""
        for var in dict.fromkeys(variables(binding.value)):
            self.reads.setdefault(var, []).append(binding)

    def nested(self, binding: Binding) -> Binding:
        """A binding with the bodies within it joined."""
        value = map_bodies(binding.value, self.body)
        return binding if value is binding.value else replace(binding, value=value)

    def level(self, binding: Binding) -> int | None:
        """The pattern of the kernel called; None for what is no call that gives one tensor."""
        if not isinstance(binding, VarBinding) or not isinstance(binding.value, CallTir):
            return None
        kernel = self.module[binding.value.callee.name]
        if not isinstance(kernel, PrimFunc) or len(binding.value.out) != 1 or binding.value.inplace:
            return None
        pattern = kernel.attrs.get("pattern")
        return next((level for name, level in LEVELS.items() if name == pattern), None)

    def joined(self, bindings: list[Binding], head: Binding) -> list[Binding]:
        """The bindings with a product and what reads it as one call, if that fits a tile."""
        assert isinstance(head, VarBinding)
        members = [head]
        readers = self.reads.get(head.var, [])
        direct = [b for b in readers if isinstance(b, VarBinding) and self.is_map(b, readers)]
        used = sum(v is head.var for b in direct for v in variables(b.value))
        if not direct or len(direct) < len(readers) or used < self.uses[head.var]:
            return bindings
        members += direct
        if len(members) > MOST:
            return bindings
        behind = bindings[next(i for i, b in enumerate(bindings) if b is head) :]
        found = self.group(members) if is_closed(behind, members) else None
        if found is None:
            return bindings
        for b in behind[1:]:
            if is_one(b, members) or not isinstance(b, VarBinding) or len(members) == MOST:
                continue
            if self.is_map(b, direct) and any(is_one(b, self.reads[m.var]) for m in members):
                more = [m for m in behind if m is b or is_one(m, members)]
                larger = [m for m in more if isinstance(m, VarBinding)]
                wider = self.group(larger) if is_closed(behind, larger) else None
                if wider is not None:
                    members, found = larger, wider
        return self.replaced(bindings, members, found)

    def is_map(self, binding: Binding, like: Sequence[Binding]) -> bool:
        """Whether a call computes a tensor of the shape that the first of some others has."""
        level, shape = self.level(binding), _shape(binding)
        return level is not None and level <= INJECTIVE and shape == _shape(like[0])

    def results(self, members: Sequence[VarBinding]) -> list[Var]:
        """The members' results that something else needs."""
        inner = Counter(v for m in members for v in variables(m.value))
        return [m.var for m in members if self.uses[m.var] > inner[m.var]]

    def group(self, members: Sequence[VarBinding]) -> CallTir | None:
        """The call of the kernel that members become; None if it fits no tile."""
        results = self.results(members)
        if not results:
            return None
        call = self.primitives.call(members, results)
        if call.name not in self.made:
            from ...rules.default import reads_in_tile  # every rule: long to import, seldom asked

            kernel, _ = merge(self.primitives.made[call.name], self.module)
            kernel = inline_producers(kernel, ())  # which pulls temporaries of the members up
            fits = reads_in_tile(kernel, self.ctx.target)
            self.made[call.name] = kernel if fits else None
        if self.made[call.name] is None:
            return None
        out = tuple(v.type for v in results)
        return CallTir(
            FunctionRef(call.name), call.args, out, call.sizes, span=members[-1].value.span
        )

    def replaced(
        self, bindings: Sequence[Binding], members: Sequence[VarBinding], call: CallTir
    ) -> list[Binding]:
        """The call where the last member was, and behind it what needs its results."""
        kernel = self.made[call.callee.name]
        assert kernel is not None
        self.module = self.module.with_({call.callee.name: kernel})
        before, behind, gone = list[Binding](), list[Binding](), {m.var for m in members}
        start, end = (
            next(i for i, b in enumerate(bindings) if b is m) for m in (members[0], members[-1])
        )
        for b in bindings[start:end]:
            if is_one(b, members):
                continue
            late = any(v in gone for v in variables(b.value))
            gone |= {b.var} if late else set()
            (behind if late else before).append(b)
        taken = self.taken(members, call)
        for m in members:
            for var in set(variables(m.value)):
                self.reads[var] = [b for b in self.reads[var] if b is not m]
        for b in taken:
            self.note(b)
        return [*bindings[:start], *before, *taken, *behind, *bindings[end + 1 :]]

    def taken(self, members: Sequence[VarBinding], call: CallTir) -> list[Binding]:
        """The call, and its results under the names they had."""
        results = self.results(members)
        if len(results) == 1:
            return [VarBinding(results[0], call, members[-1].span)]
        both = Var(members[0].var.name, TupleType(call.out), members[0].var.span)
        fields = [VarBinding(v, TupleGet(both, i), members[-1].span) for i, v in enumerate(results)]
        return [VarBinding(both, call, members[-1].span), *fields]


def _shape(binding: Binding) -> object:
    of = binding.var.type
    return of.shape if isinstance(of, TensorType) else None


def is_one(binding: Binding, of: Sequence[Binding]) -> bool:
    """Whether a binding is one of some, itself and not its like."""
    return any(b is binding for b in of)


def is_closed(bindings: Sequence[Binding], members: Sequence[VarBinding]) -> bool:
    """Whether nothing else stands between members that needs one and is needed by another.

    Args:
        bindings: A block's from the first member on.
        members: Those, in their order.
    """
    made, others, left = {m.var for m in members}, set[Var](), len(members)
    for b in bindings:
        needed = set(variables(b.value))
        if is_one(b, members):
            if needed & others:
                return False
            left -= 1
            if not left:
                break
        elif needed & (made | others):
            others.add(b.var)
    return True
