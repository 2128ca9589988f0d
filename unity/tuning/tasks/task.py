"""Tasks: the kernels of a program that rules lay out, equal ones once, at sizes to tune for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from unity.ir.dims import Symbol
from unity.ir.graph import (
    BindingBlock,
    Body,
    CallTir,
    Constant,
    Expr,
    Function,
    FunctionRef,
    If,
    Scan,
    Var,
    VarBinding,
    While,
)
from unity.ir.module import IRModule
from unity.ir.signature import scalar_params
from unity.ir.stmt import PrimFunc
from unity.ir.symbols.representative import of_symbol
from unity.ir.types import ShapeType, TensorType, TupleType, Type
from unity.ir.visit import type_symbols
from unity.machine.target import Target
from unity.op.infer import infer_type
from unity.transform import Context, Pipeline
from unity.transform.rules.by_default import ScheduleDefault
from unity.transform.rules.canonical import canonical, identity
from unity.transform.scheduled import awaits_layout

_MOST_COPIES, _MOST_BYTES, _FEW_BYTES = 64, 1 << 28, 1 << 12
"""Copies of a kernel's constants, and bytes of all together, at most; and what needs none."""
KERNEL, CALLER = "kernel", "main"
"""What a task's kernel and the graph function that calls it are called."""


Place = tuple[str, int]
"""A kernel's name in the program, and for which of the sizes that are tuned for."""


@dataclass(frozen=True, slots=True)
class Task:
    """A kernel to be tuned.

    Attributes:
        identity: What records call it.
        name: What the program calls it; of equal ones the first.
        func: The kernel, `canonical`.
        call: How it is called.
        params: The types of the parameters of `module`'s function: the call's operands, and a shape
            where sizes are told by none of them.
        sizes: What unknown sizes are, by name, sorted.
        count: How many call sites there are.
        target: The machine.
        constants: Which operands of the call are constants, and how many bytes each has.
        between: Bytes of constants that the whole program has: it reads them between two calls.
        places: Where the program calls it at these sizes.
    """

    identity: str
    name: str
    func: PrimFunc
    call: CallTir
    params: tuple[Type, ...]
    sizes: tuple[tuple[str, int], ...]
    count: int
    target: Target
    constants: Mapping[int, int] = field(default_factory=dict)
    between: int = 0
    places: frozenset[Place] = frozenset()

    @property
    def takes_sizes(self) -> bool:
        """Whether the kernel takes unknown sizes, and nothing else besides buffers.

        Candidates of such a kernel are compiled `at_sizes` while they are searched.
        """
        return (
            bool(self.sizes)
            and all(argument < 0 for argument in self.call.inplace)
            and not scalar_params(self.func)
        )

    @property
    def copies(self) -> int:
        """With how many copies of its constants calls take turns: they lie as far as in a program.

        Weights of a kernel that is called again and again lie in the nearest cache; in a program
        all others are read before they are read once more.
        """
        own = sum(self.constants.values())
        if own < _FEW_BYTES:
            return 1
        return max(1, min(_MOST_COPIES, min(self.between, _MOST_BYTES) // own))

    def module(self, func: PrimFunc | None = None) -> IRModule:
        """A program of this kernel alone.

        Args:
            func: The kernel, laid out; as it is if not given.
        """
        params = tuple(Var(f"x{k}", t) for k, t in enumerate(self.params))
        call = CallTir(
            FunctionRef(KERNEL),
            params[: len(self.call.args)],
            self.call.out,
            self.call.sym_args,
            self.call.inplace,
        )
        out = call.out
        made = Var("made", out[0] if len(out) == 1 else TupleType(out))
        body = Body((BindingBlock((VarBinding(made, call),), dataflow=True),), made)
        main = Function(params, body, made.type)
        return IRModule({CALLER: main, KERNEL: self.func if func is None else func})


def tasks_of(
    module: IRModule,
    passes: Pipeline,
    ctx: Context,
    sizes: Sequence[Mapping[str, int]] = ({},),
) -> list[Task]:
    """The tasks of a program, those of most calls first.

    Args:
        module: The program, as `unity.compile` takes it.
        passes: The pipeline it is compiled by.
        ctx: What passes are given: the machine.
        sizes: What unknown sizes are, by name, each time; what is not given is a guess.
    """
    lowered = passes.until(ScheduleDefault).run(module, ctx)
    kernels = lowered.prim_funcs()
    found: dict[tuple[object, ...], Task] = {}
    calls = [c for f in lowered.graph_functions().values() for c in calls_in(f.body)]
    read = {a: a.data.nbytes for c in calls for a in c.args if isinstance(a, Constant)}
    for call in calls:
        func = kernels.get(call.callee.name)
        if func is None or not awaits_layout(func):
            continue
        params = tuple(infer_type(a, {}) for a in call.args)
        if not all(_is_tensor(p) for p in params):
            continue
        symbols = {s for t in (*params, *call.out) for s in type_symbols(t)}
        unseen = sorted(symbols - _told(params), key=lambda s: s.name)
        if unseen:
            params = (*params, ShapeType(tuple(unseen)))
        name = identity(func)
        at: dict[tuple[tuple[str, int], ...], set[Place]] = {}
        for k, given in enumerate(sizes):
            here = tuple(sorted((s.name, _size(s, given)) for s in symbols))
            at.setdefault(here, set()).add((call.callee.name, k))
        for here, places in at.items():
            key = (name, params, call.out, here)
            before = found.get(key)
            found[key] = Task(
                identity=name,
                name=call.callee.name if before is None else before.name,
                func=canonical(func),
                call=call,
                params=params,
                sizes=here,
                count=1 if before is None else before.count + 1,
                target=ctx.target,
                constants={k: read[a] for k, a in enumerate(call.args) if isinstance(a, Constant)},
                between=sum(read.values()),
                places=frozenset(places if before is None else before.places | places),
            )
    return sorted(found.values(), key=lambda t: (-t.count, t.name, t.sizes))


def calls_in(body: Body) -> Iterator[CallTir]:
    """The calls of kernels in a body, those of branches and loops too."""
    for block in body.blocks:
        for binding in block.bindings:
            yield from _calls_of(binding.value)


def _calls_of(value: Expr) -> Iterator[CallTir]:
    match value:
        case CallTir():
            yield value
        case If(_, then, orelse):
            yield from calls_in(then)
            yield from calls_in(orelse)
        case While(_, _, condition, body):
            yield from calls_in(condition)
            yield from calls_in(body)
        case Scan() | Function():
            yield from calls_in(value.body)
        case _:
            return


def _is_tensor(t: Type) -> bool:
    return isinstance(t, TensorType) and isinstance(t.shape, tuple) and t.dtype is not None


def _told(params: tuple[Type, ...]) -> set[Symbol]:
    """The symbols that some tensor has as a dim by itself, so that a call tells them."""
    shapes = (t.shape for t in params if isinstance(t, TensorType))
    return {
        d for shape in shapes if isinstance(shape, tuple) for d in shape if isinstance(d, Symbol)
    }


def _size(symbol: Symbol, given: Mapping[str, int]) -> int:
    return given.get(symbol.name, of_symbol(symbol))
