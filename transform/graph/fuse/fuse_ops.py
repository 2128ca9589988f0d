"""FuseOps: kernel calls that belong together become one call of a primitive function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from unity.ir.graph import (
    Binding,
    BindingBlock,
    Body,
    Call,
    CallTir,
    Function,
    FunctionRef,
    Var,
    VarBinding,
)
from unity.ir.module import IRModule
from unity.ir.stmt import PrimFunc
from unity.ir.types import TensorType
from unity.ir.visit import stmt_exprs, walk_stmt
from unity.ir.visiting.visit_graph import map_bodies
from unity.op.registry import Pattern

from ...passes import Context, Pass
from ..memory.arena import ALIGNMENT
from ..memory.mark_copies import copies
from ..names import Names
from ..uses import count_uses
from .groups import BROADCAST, ELEMENTWISE, INJECTIVE, LEVELS, OPAQUE, OUT_FUSABLE, Node, group
from .inline_producers import (
    is_dearer_than_a_load,
    is_transposition,
    looks_up,
    reads_along_axes,
    reads_once,
    widens,
)
from .primitive_functions import Primitives, tir_call


@dataclass(frozen=True, slots=True)
class FuseOps(Pass):
    """Groups kernel calls within dataflow blocks by their kernels' ``pattern`` attribute.

    Each group of two calls or more becomes a private function with the attribute ``primitive``,
    shared among equal groups; `FuseTir` makes one kernel of it.

    >>> from unity.script import parse, print_module
    >>> from unity.transform.graph import LegalizeOps
    >>> before = parse('''
    ... @script.function
    ... def main(x: f32[Tensor, 4, 8], w: f32[Tensor, 8, 2]) -> f32[Tensor, 4, 2]:
    ...     with R.dataflow():
    ...         y = R.nn.relu(R.matmul(x, w))
    ...     return y
    ... ''')
    >>> legal = LegalizeOps()(before, Context())
    >>> fused = FuseOps()(legal, Context())
    >>> print(print_module(fused.without("matmul", "relu")), end="")
    @script.function
    def main(x: f32[Tensor, 4, 8], w: f32[Tensor, 8, 2]) -> f32[Tensor, 4, 2]:
        with R.dataflow():
            y = fused_matmul_relu(x, w)
        return y
    <BLANKLINE>
    <BLANKLINE>
    @script.function(attrs={"primitive": True, "private": True})
    def fused_matmul_relu(x: f32[Tensor, 4, 8], w: f32[Tensor, 8, 2]) -> f32[Tensor, 4, 2]:
        with R.dataflow():
            matmul = R.call_tir(matmul, (x, w), out=f32[Tensor, 4, 2])
            y = R.call_tir(relu, (matmul,), out=f32[Tensor, 4, 2])
        return y
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """All graph functions, with one table of primitive functions."""
        fuser = _Fuser(module, Primitives(Names(module), module.prim_funcs()))
        functions = {name: fuser.function(f) for name, f in module.graph_functions().items()}
        return module.with_({**functions, **fuser.primitives.made})


@dataclass(slots=True)
class _Fuser:
    """Carries the primitive functions, and what is known of each kernel."""

    module: IRModule
    primitives: Primitives
    costly: dict[str, bool] = field(default_factory=dict[str, bool])
    once: dict[tuple[str, int], bool] = field(default_factory=dict[tuple[str, int], bool])
    uses: Counter[Var] = field(default_factory=Counter[Var])
    searching: dict[str, bool] = field(default_factory=dict[str, bool])
    found: set[Var] = field(default_factory=set[Var])

    def function(self, f: Function) -> Function:
        """A function with its groups called instead of their members."""
        if f.attrs.get("primitive", False):
            return f
        self.uses = count_uses(f.body)
        body = self.body(f.body)
        return f if body is f.body else replace(f, body=body)

    def body(self, body: Body) -> Body:
        """Each dataflow block by itself, nested bodies included."""
        blocks = tuple(self.block(b) for b in body.blocks)
        same = all(a is b for a, b in zip(blocks, body.blocks, strict=True))
        return body if same else replace(body, blocks=blocks)

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block with its groups fused."""
        bindings = [self.nested(b) for b in block.bindings]
        if block.dataflow:
            bindings = self.fused(bindings)
        same = len(bindings) == len(block.bindings) and all(
            a is b for a, b in zip(bindings, block.bindings, strict=True)
        )
        return block if same else replace(block, bindings=tuple(bindings))

    def nested(self, binding: Binding) -> Binding:
        """A binding with the bodies within it fused."""
        value = map_bodies(binding.value, self.body)
        return binding if value is binding.value else replace(binding, value=value)

    def fused(self, bindings: Sequence[Binding]) -> list[Binding]:
        """The bindings, each group put where its last member was."""
        members = [b for b in bindings if isinstance(b, VarBinding) and self.is_node(b)]
        nodes = self.graph(members)
        groups: dict[int, list[VarBinding]] = {}
        for i, last in enumerate(group(nodes)):
            groups.setdefault(last, []).append(members[i])
        calls = {m[-1].var: self.call(m) for m in groups.values() if len(m) > 1}
        inside = {b.var for m in groups.values() if len(m) > 1 for b in m}
        result: list[Binding] = []
        for binding in bindings:
            if binding.var in calls:
                result.append(calls[binding.var])
            elif binding.var not in inside:
                result.append(binding)
        return result

    def is_node(self, binding: VarBinding) -> bool:
        """Whether a binding takes part: a kernel call that gives one tensor."""
        if not isinstance(binding.value, CallTir):
            return False
        call = binding.value
        return len(call.out) == 1 and not call.inplace and self.level(call) < OPAQUE

    def level(self, call: CallTir) -> int:
        """The pattern of the kernel called; opaque for one that says nothing."""
        pattern = self.kernel(call).attrs.get("pattern", "opaque")
        return LEVELS.get(cast("Pattern", pattern), OPAQUE)

    def kernel(self, call: CallTir) -> PrimFunc:
        """The kernel called."""
        kernel = self.module[call.callee.name]
        assert isinstance(kernel, PrimFunc)
        return kernel

    def graph(self, members: Sequence[VarBinding]) -> list[Node]:
        """The dataflow graph of the kernel calls."""
        index = {b.var: i for i, b in enumerate(members)}
        calls = [tir_call(b) for b in members]
        callees = Counter(c.callee.name for c in calls)
        nodes = [Node(self.level(c), calls=callees[c.callee.name]) for c in calls]
        inner: Counter[Var] = Counter()
        users: list[list[tuple[CallTir, int]]] = [[] for _ in members]
        self.found = set()
        for binding, call in zip(members, calls, strict=True):
            if self.looks_up(call) or self.passes_on(call):
                self.found.add(binding.var)
        for i, (binding, call) in enumerate(zip(members, calls, strict=True)):
            for place, arg in enumerate(call.args):
                if isinstance(arg, Var) and arg in index:
                    inner[arg] += 1
                    source = index[arg]
                    edge = self.edge(calls[source], arg, call, binding.var, place)
                    nodes[source].uses.append((i, edge))
                    users[source].append((call, place))
        for i, (binding, node) in enumerate(zip(members, nodes, strict=True)):
            node.escapes = self.uses[binding.var] > inner[binding.var]
            node.widens = widens(self.kernel(calls[i]))
            node.transposes = is_transposition(self.kernel(calls[i])) and all(
                self.contracts(*user) for user in users[i]
            )
        self.mark_gathering(nodes, members, index)
        return nodes

    def mark_gathering(
        self, nodes: Sequence[Node], members: Sequence[VarBinding], index: Mapping[Var, int]
    ) -> None:
        """Mark what puts together tensors made here, each of which can lie in the whole."""
        wholes = {
            i: [a for a in tir_call(b).args if isinstance(a, Var) and a in index]
            for i, b in enumerate(members)
            if nodes[i].level == INJECTIVE and self.gathers(tir_call(b))
        }
        places = Counter(a for args in wholes.values() for a in args)
        for i, args in wholes.items():
            alone = len(args) == len(tir_call(members[i]).args) and all(
                places[a] == 1 for a in args
            )
            # Where all of them would be computed in its place, nothing is moved either.
            nodes[i].gathers = alone and any(_is_anchored(index[a], nodes) for a in args)

    def gathers(self, call: CallTir) -> bool:
        """Whether a kernel puts tensors together, each on whole lines of the cache."""
        kernel = self.kernel(call)
        if len(kernel.buffers) < 3:
            return False
        found, whole = copies(kernel), kernel.buffers[-1]
        return len(found) == len(kernel.buffers) - 1 and all(
            begin * whole.dtype.bytes % ALIGNMENT == 0 for _, _, begin in found
        )

    def edge(self, source: CallTir, value: Var, user: CallTir, result: Var, place: int) -> int:
        """The pattern of an edge: that of the user, better or worse where shapes tell."""
        level = self.level(user)
        if level == BROADCAST and _shape(value) == _shape(result):
            level = ELEMENTWISE
        costly = self.is_costly(source) or value in self.found
        if costly and not self.reads_once(user, place):
            return OPAQUE  # inlined, it would be computed again for each element that reads it
        return level

    def is_costly(self, call: CallTir) -> bool:
        """Whether a kernel calls functions or divides."""
        name = call.callee.name
        if name not in self.costly:
            self.costly[name] = any(
                is_dearer_than_a_load(e)
                for s in walk_stmt(self.kernel(call).body)
                for e in stmt_exprs(s)
            )
        return self.costly[name]

    def looks_up(self, call: CallTir) -> bool:
        """Whether a kernel reads where another tensor says: that takes long for an element."""
        name = call.callee.name
        if name not in self.searching:
            self.searching[name] = looks_up(self.kernel(call).body)
        return self.searching[name]

    def passes_on(self, call: CallTir) -> bool:
        """Whether a kernel does something to each element of what was looked up."""
        return self.level(call) <= INJECTIVE and any(
            isinstance(a, Var) and a in self.found and self.reads_once(call, i)
            for i, a in enumerate(call.args)
        )

    def reads_once(self, call: CallTir, place: int) -> bool:
        """Whether a kernel reads each element of an argument once."""
        key = (call.callee.name, place)
        if key not in self.once:
            kernel = self.kernel(call)
            self.once[key] = reads_once(kernel.body, kernel.buffers[place])
        return self.once[key]

    def contracts(self, call: CallTir, place: int) -> bool:
        """Whether a kernel is a contraction that walks through an argument along its axes."""
        kernel = self.kernel(call)
        return self.level(call) == OUT_FUSABLE and reads_along_axes(
            kernel.body, kernel.buffers[place]
        )

    def call(self, members: Sequence[VarBinding]) -> VarBinding:
        """The call that replaces a group."""
        last = members[-1]
        call = self.primitives.call(members)
        value = Call(FunctionRef(call.name), call.given, span=last.value.span)
        return replace(last, value=value)


def _is_anchored(i: int, nodes: Sequence[Node]) -> bool:
    """Whether a node is more than what may be computed where it is used, or follows such a one."""
    if nodes[i].level > INJECTIVE:
        return True
    before = [j for j, n in enumerate(nodes[:i]) if (i, ELEMENTWISE) in n.uses]
    return any(_is_anchored(j, nodes) for j in before)


def _shape(var: Var) -> object:
    return var.type.shape if isinstance(var.type, TensorType) else None
