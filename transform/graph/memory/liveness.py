"""When each storage of a function in `memory.*` form is in use.

Comes in: a function after `LowerCalls`. Goes out: for every tensor it allocates the interval of
bindings between its allocation and its last use, and whether it outlives the function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from unity.ir.graph import (
    Body,
    Call,
    Expr,
    Function,
    FunctionRef,
    If,
    Op,
    Scan,
    Tuple,
    Var,
    VarBinding,
    While,
)
from unity.ir.types import TensorType
from unity.ir.visit import bodies_of, free_vars, graph_children


@dataclass(slots=True)
class Storage:
    """A tensor that the function allocates; positions count bindings, nested bodies included.

    Attributes:
        var: The variable of its allocation.
        type: What it holds.
        start: Where it is allocated.
        end: Its last use; a use within a loop counts as one at the loop's end.
        escapes: Whether it is a result, or is used by something that may keep it.
    """

    var: Var
    type: TensorType
    start: int
    end: int
    escapes: bool = False


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A ``memory.call_kernel``: its binding, where it stands and what its buffers are given."""

    var: Var
    position: int
    kernel: str
    buffers: tuple[Expr, ...]


@dataclass(slots=True)
class Liveness:
    """The storages of one function, and its kernel calls in order."""

    storages: dict[Var, Storage] = field(default_factory=dict[Var, Storage])
    calls: list[KernelCall] = field(default_factory=list[KernelCall])
    roots: dict[Var, Var] = field(default_factory=dict[Var, Var])
    tuples: dict[Var, tuple[Expr, ...]] = field(default_factory=dict[Var, tuple[Expr, ...]])
    _position: int = 0

    def root(self, var: Var) -> Storage | None:
        """The storage behind a variable, seen through views; None for one from outside."""
        return self.storages.get(self.roots.get(var, var))

    def body(self, body: Body) -> None:
        """Note what a body allocates and uses; its result escapes."""
        for block in body.blocks:
            for binding in block.bindings:
                self._position += 1
                if isinstance(binding, VarBinding):
                    self._binding(binding)
                else:
                    self._escape(binding.value)
        self._escape(body.result)

    def _binding(self, binding: VarBinding) -> None:
        var, value = binding.var, binding.value
        match value:
            case Call(Op("memory.alloc_tensor")):
                assert isinstance(var.type, TensorType)
                self.storages[var] = Storage(var, var.type, self._position, self._position)
            case Call(Op("memory.reshape_view"), (source, _)):
                if isinstance(source, Var):
                    self.roots[var] = self.roots.get(source, source)
                self._use(source)
            case Call(Op("memory.call_kernel"), (FunctionRef(name), Tuple(buffers), _)):
                for buffer in buffers:
                    self._use(buffer)
                self.calls.append(KernelCall(var, self._position, name, buffers))
            case Tuple(fields):
                self.tuples[var] = fields  # a tuple nobody takes apart keeps nothing alive
            case If():
                self._use(value.condition)
                self.body(value.then)
                self.body(value.orelse)
            case While() | Scan():
                self._loop(value)
            case Function():
                for captured in free_vars(value):
                    self._escape(captured)
            case _:
                self._escape_all(value)

    def _loop(self, loop: While | Scan) -> None:
        """What is used within a loop is needed until it ends; its state starts as a copy."""
        begin = self._position
        for child in graph_children(loop):
            self._use(child)
        for body in bodies_of(loop):
            self.body(body)
        self._position += 1
        for storage in self.storages.values():
            if storage.start <= begin < storage.end:
                storage.end = self._position
        for child in loop.inputs if isinstance(loop, Scan) else ():
            self._use(child)

    def _escape_all(self, e: Expr) -> None:
        for child in graph_children(e):
            self._escape(child)

    def _escape(self, e: Expr) -> None:
        for var in self._vars(e):
            storage = self.root(var)
            if storage is not None:
                storage.escapes = True
        self._use(e)

    def _use(self, e: Expr) -> None:
        for var in self._vars(e):
            storage = self.root(var)
            if storage is not None:
                storage.end = max(storage.end, self._position)

    def _vars(self, e: Expr) -> Iterator[Var]:
        if isinstance(e, Var):
            yield e
            for item in self.tuples.get(e, ()):
                yield from self._vars(item)
        for child in graph_children(e):
            yield from self._vars(child)
