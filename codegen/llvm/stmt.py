"""Statements to instructions: loops, conditionals, storage, asserts; parallel loops as tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from unity.ir.dtype import INT64
from unity.ir.marks import TILES
from unity.ir.prim_expr import Binary, Imm, Intrinsic, Load, PrimVar, SizeVar
from unity.ir.stmt import (
    Allocate,
    Assert,
    Block,
    Buffer,
    Evaluate,
    For,
    IfThen,
    Let,
    PrimWhile,
    Seq,
    Stmt,
    Store,
)
from unity.machine.stack import stack_bytes

from .emitter import Emitter, Unit
from .expr import Expressions
from .facts.analysis import Analysis
from .facts.certain import takes_first
from .facts.cost import work
from .instructions import Instructions, marked
from .memory import At, store
from .streaming import streams
from .types import I64, PTR, Ty, memory_type, value_type

OUT_OF_MEMORY = -1
"""What a kernel returns when it cannot allocate."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What holds for a kernel as a whole.

    Attributes:
        analysis: What is found in it.
        checks: Whether each access asserts that its index lies within the buffer.
        proven: Identities of accesses that surely do.
        numbers: Buffers that never hold NaN.
        may_alias: Whether its buffers may overlap.
        streamed: Parameters that are written past the caches, which begin with a line of memory.
    """

    analysis: Analysis
    checks: bool = False
    proven: frozenset[int] = frozenset()
    numbers: frozenset[Buffer] = frozenset()
    may_alias: bool = False
    streamed: frozenset[Buffer] = frozenset()


Key: TypeAlias = Buffer | PrimVar | SizeVar
"""What a function takes from outside."""


class Captures:
    """What a task's body turns out to use of the function around it, in order of first use.

    Attributes:
        outer: The registers there.
        taken: Each thing, the type of its register, the register there.
    """

    def __init__(self, outer: Expressions) -> None:
        self.outer = outer
        self.taken: list[tuple[Key, Ty, str]] = []

    def take(self, key: Key) -> str:
        """The parameter that a thing from outside arrives in."""
        if isinstance(key, Buffer):
            self.taken.append((key, PTR, self.outer.pointers[key]))
        else:
            self.taken.append((key, value_type(key.dtype), self.outer.values[key]))
        return f"%c{len(self.taken) - 1}"


class Statements:
    """Lowering of statements within one LLVM function.

    Attributes:
        em: Where instructions go.
        expressions: Lowering of the expressions in them.
        name: The function's name; tasks outlined from it are named after it.
        facts: What is known of the kernel.
        messages: What each assert of the kernel says, in the order of their codes.
    """

    __slots__ = ("_heap", "_instructions", "em", "expressions", "facts", "messages", "name")

    def __init__(self, unit: Unit, name: str, messages: list[str], facts: Facts) -> None:
        self.em = Emitter(unit)
        self.name = name
        self.messages = messages
        self.facts = facts
        self.expressions = Expressions(
            self.em,
            self._leave,
            checks=facts.checks,
            proven=facts.proven,
            numbers=facts.numbers,
        )
        self._heap: list[str] = []
        self._instructions = Instructions(self.em, self.expressions, {})

    def stmt(self, s: Stmt) -> None:
        """Emit a statement."""
        match s:
            case Store():
                self._store(s)
            case For():
                self._for(s)
            case Seq():
                for child in s.stmts:
                    self.stmt(child)
            case Let():
                self._let(s)
            case IfThen():
                self._if(s)
            case Allocate():
                self._allocate(s)
            case PrimWhile():
                self._while(s)
            case Assert():
                self.messages.append(s.message)
                condition = self.expressions.expr(s.condition)
                self.expressions.require(condition, len(self.messages))
            case Evaluate(Intrinsic("prefetch", (Load() as load,))) if load.dtype.lanes == 1:
                self.expressions.prefetch(load)
            case Evaluate():
                self.expressions.expr(s.value)
            case Block():
                raise AssertionError(f"the block {s.name!r} was not lowered")
            case _:
                assert_never(s)

    def finish(self) -> None:
        """End the function: success."""
        if self.facts.streamed:  # such stores are seen in order by other threads only behind it
            self.em.do("fence seq_cst")
        self.em.do("ret i32 0")

    def _leave(self, code: str) -> None:
        for pointer in reversed(self._heap):
            self.em.do(f"call void @free(ptr {pointer})")
        self.em.do(f"ret i32 {code}")

    def _store(self, s: Store) -> None:
        x = self.expressions
        lanes = max(
            s.value.dtype.lanes,
            max((i.dtype.lanes for i in s.indices), default=1),
            1 if s.predicate is None else s.predicate.dtype.lanes,
        )
        dtype = s.buffer.dtype.with_lanes(lanes)
        if s.predicate is not None and s.predicate.dtype.lanes == 1:
            # Nothing of a store that is off may be evaluated: its operands may be out of bounds.
            self._if(IfThen(s.predicate, Store(s.buffer, s.indices, s.value)))
            return
        mask = None if s.predicate is None else x.expr(s.predicate)
        with x.masked(mask, lanes):
            if isinstance(s.value, Binary) and _updates(s, s.value):
                value = x.reduction(s.value)
            else:
                value = x.expr(s.value)
            place = x.place(s.indices, lanes)
        if s.value.dtype.lanes != lanes:
            value = self.em.splat(value, value_type(dtype))
        if isinstance(place, At) and lanes > 1:
            raise AssertionError("a store of several lanes to one element")
        if x.checks and id(s) not in x.proven:
            x.check(s.buffer, place, lanes, mask)
        past = streams(s, self.facts.streamed, dtype)
        first = s.predicate is not None and takes_first(s.predicate, x.first_lanes)
        pointer = x.pointers[s.buffer]
        store(self.em, pointer, dtype, place, value, mask, streaming=past, first_lanes=first)

    def _let(self, s: Let) -> None:
        body: Stmt = s
        while isinstance(body, Let):  # chains of them are long: no recursion
            self._bind_let(body)
            body = body.body
        self.stmt(body)

    def _bind_let(self, s: Let) -> None:
        x = self.expressions
        counted = s.var.dtype == INT64 and s.value.dtype == INT64
        x.bind(s.var, x.index(s.value) if counted else x.expr(s.value))
        if counted and x.is_nonnegative(s.value):
            x.nonnegative.add(s.var)
        if takes_first(s.value, x.first_lanes):
            x.first_lanes.add(s.var)

    def _if(self, s: IfThen) -> None:
        em = self.em
        condition = self.expressions.expr(s.condition)
        then, after = em.new_label("if"), em.new_label("endif")
        orelse = after if s.orelse is None else em.new_label("else")
        em.branch_if(condition, then, orelse)
        for label, body in ((then, s.then), (orelse, s.orelse)):
            if body is not None:
                em.label(label)
                mark = em.mark()
                self.stmt(body)
                em.forget(mark)
                em.branch(after)
        em.label(after)

    def _while(self, s: PrimWhile) -> None:
        em = self.em
        head, body, after = em.new_label("while"), em.new_label("body"), em.new_label("endwhile")
        em.branch(head)
        em.label(head)
        mark = em.mark()
        condition = self.expressions.expr(s.condition)
        em.branch_if(condition, body, after)
        em.label(body)
        self.stmt(s.body)
        em.branch(head)
        em.forget(mark)
        em.label(after)

    # Storage

    def _allocate(self, s: Allocate) -> None:
        em, buffer = self.em, s.buffer
        if buffer.scope == TILES:
            self.stmt(self._instructions.configure(s))
            self._instructions.release()
            return
        element = memory_type(buffer.dtype)
        count = self.expressions.size(buffer)
        limit = stack_bytes(buffer.scope)
        if count[0] != "%" and int(count) * buffer.dtype.bytes <= limit:
            self.expressions.pointers[buffer] = em.alloca(
                element.text, max(1, int(count)), max(buffer.align, buffer.dtype.bytes)
            )
            self.stmt(s.body)
            return
        size = em.mul(count, str(buffer.dtype.bytes), "")
        room = em.add(size, str(buffer.align), "")
        block = em.effect(f"call noalias ptr @malloc(i64 {room})")
        none = em.pure(f"icmp ne ptr {block}, null")
        self.expressions.require(none, OUT_OF_MEMORY)
        number = em.pure(f"ptrtoint ptr {block} to i64")
        past = em.pure(f"and i64 {number}, {buffer.align - 1}")
        gap = em.pure(f"sub i64 {buffer.align}, {past}")
        self.expressions.pointers[buffer] = em.pure(f"getelementptr i8, ptr {block}, i64 {gap}")
        self._heap.append(block)
        self.stmt(s.body)
        self._heap.pop()
        em.do(f"call void @free(ptr {block})")

    # Loops

    def _for(self, s: For) -> None:
        x = self.expressions
        nest = marked(s)
        if nest is not None:
            self._instructions.emit(nest)
            return
        if s.kind == "parallel" and not (isinstance(s.extent, Imm) and s.extent.value <= 1):
            self._parallel(s)
            return
        begin, extent = x.index(s.begin), x.index(s.extent)
        if x.is_nonnegative(s.begin):
            x.nonnegative.add(s.var)
        if extent[0] != "%" and int(extent) <= 1:
            if int(extent) == 1:
                x.bind(s.var, self._counter(begin, s.var))
                if x.is_nonnegative(s.begin):
                    x.nonnegative.add(s.var)
                self.stmt(s.body)
            return
        x.counters.add(s.var)
        end = self.em.add(begin, extent)
        self._loop(s, begin, end, sure=extent[0] != "%")

    def _counter(self, value: str, var: PrimVar) -> str:
        """The i64 counter as the variable's dtype."""
        t = value_type(var.dtype)
        if t == I64 or value[0] != "%":
            return value
        return self.em.pure(f"trunc i64 {value} to {t.text}")

    def _loop(self, s: For, begin: str, end: str, *, sure: bool, body: Stmt | None = None) -> None:
        """A loop with its test at the end; guarded unless it surely runs."""
        em = self.em
        head, after = em.new_label("for"), em.new_label("endfor")
        mark = em.mark()
        if sure:
            em.branch(head)
        else:
            some = em.pure(f"icmp slt i64 {begin}, {end}")
            em.branch_if(some, head, after)
        before = em.block
        em.label(head)
        counter, following = em.register(), em.register()
        phi = len(em.lines)
        em.lines.append("")
        around = id(s) in self.facts.analysis.around_sums
        shown = em.opaque(counter) if around else counter
        self.expressions.bind(s.var, self._counter(shown, s.var))
        self.stmt(s.body if body is None else body)
        em.lines[phi] = (
            f"  {counter} = phi i64 [ {begin}, %{before} ], [ {following}, %{em.block} ]"
        )
        em.do(f"{following} = add nsw i64 {counter}, 1")
        again = em.effect(f"icmp slt i64 {following}, {end}")
        em.branch_if(again, head, after, self._loop_metadata(s))
        em.forget(mark)
        em.label(after)

    def _loop_metadata(self, s: For) -> str:
        """Vector code was unrolled as far as is good; loops marked so are unrolled by LLVM.

        What is stored at places told by memory goes one by one: LLVM would make vectors of them,
        to take these apart again for each store, behind a branch of its own.
        """
        unit = self.em.unit
        if s.kind == "unrolled":
            hint = '!{!"llvm.loop.unroll.full"}'
        elif id(s) in self.facts.analysis.vector_loops:
            hint = '!{!"llvm.loop.unroll.disable"}'
        elif id(s) in self.facts.analysis.scattering:
            hint = '!{!"llvm.loop.vectorize.enable", i1 false}'
        else:
            return ""
        node = unit.metadata_node(f"distinct !{{{{self}}, {unit.metadata_node(hint)}}}")
        return f", !llvm.loop {node}"

    # Parallel loops

    def _parallel(self, s: For) -> None:
        """Outline the body as a task over a part of the range, and run the tasks on the pool."""
        em, x = self.em, self.expressions
        begin, extent = x.index(s.begin), x.index(s.extent)
        task, captured = self._task(s)
        values = [(t, value) for _, t, value in captured.taken]
        mark = em.mark()
        run, after = em.new_label("parallel"), em.new_label("endparallel")
        some = em.pure(f"icmp sgt i64 {extent}, 0")
        em.branch_if(some, run, after)
        em.label(run)
        tasks = self._task_count(s, extent)
        fields: list[tuple[Ty, str]] = [(I64, begin), (I64, extent), (I64, "0"), *values]
        env = em.alloca("i64", len(fields), 8)
        slots: list[str] = []
        for k, (t, value) in enumerate(fields):
            assert t.lanes == 1, "a vector from outside a parallel loop"
            slot = em.pure(f"getelementptr inbounds i64, ptr {env}, i64 {k}")
            slots.append(slot)
            em.do(f"store {t.text} {value}, ptr {slot}, align 8")
        limit = em.effect("call i32 @unity_thread_limit()")
        em.do(f"call void @unity_parallel_for(ptr @{task}, ptr {env}, i64 {tasks}, i32 {limit})")
        code = em.effect(f"load i32, ptr {slots[2]}, align 8")
        good, bad = em.new_label("good"), em.new_label("bad")
        failed = em.effect(f"icmp ne i32 {code}, 0")
        em.branch_if(failed, bad, good)
        em.label(bad)
        self._leave(code)
        em.label(good)
        em.branch(after)
        em.forget(mark)
        em.label(after)

    def _task_count(self, s: For, extent: str) -> str:
        """Enough tasks for balance, none so small that handing it out costs more."""
        em = self.em
        threads = em.effect("call i32 @unity_thread_limit()")
        wide = em.pure(f"zext i32 {threads} to i64")
        machine = em.unit.machine
        grain = machine.grain("operations")
        most = em.pure(f"mul i64 {wide}, {machine.tasks_per_thread}")
        total = em.mul(extent, self.expressions.index(work(s.body)), "")
        by_work = (
            str(max(1, int(total) // grain))
            if total[0] != "%"
            else em.intrinsic("smax", I64, em.pure(f"udiv i64 {total}, {grain}"), "1")
        )
        return em.intrinsic("smin", I64, em.intrinsic("smin", I64, most, by_work), extent)

    def _task(self, s: For) -> tuple[str, Captures]:
        """Emit the body's function and the task that unpacks the environment; the task's name."""
        unit, outer = self.em.unit, self.expressions
        name = f"{self.name}.task{len(unit.functions)}"
        unit.functions[name] = ""  # takes its place before the functions outlined from it
        inner = Statements(unit, f"{name}.body", self.messages, self.facts)
        captured = Captures(outer)
        inner.expressions.enclose(captured.take, outer)
        if outer.is_nonnegative(s.begin):
            inner.expressions.nonnegative.add(s.var)
        inner.expressions.counters.add(s.var)
        if isinstance(s.body, Allocate) and s.body.buffer.scope == TILES:  # once for all of it
            body = inner._instructions.configure(s.body)
            inner._loop(s, "%first", "%last", sure=True, body=body)
            inner._instructions.release()
        else:
            inner._loop(s, "%first", "%last", sure=True)
        inner.finish()
        params = [f"{self.parameter(key)} %c{k}" for k, (key, _, _) in enumerate(captured.taken)]
        params += ["i64 %first", "i64 %last"]
        header = f"define internal i32 @{name}.body({', '.join(params)}) {unit.attributes}"
        unit.functions[f"{name}.body"] = inner.em.function(header)
        unit.functions[name] = _task_text(name, [t for _, t, _ in captured.taken], unit.attributes)
        return name, captured

    def parameter(self, key: Key) -> str:
        """The type and attributes of a parameter of an internal function."""
        if not isinstance(key, Buffer):
            return value_type(key.dtype).text
        flags = "" if self.facts.may_alias else " noalias"
        return f"ptr{flags}" if key in self.facts.analysis.written else f"ptr{flags} readonly"

    def bind(self, key: Key, value: str) -> None:
        """Make a parameter known under its register."""
        if isinstance(key, Buffer):
            self.expressions.pointers[key] = value
        else:
            self.expressions.values[key] = value


def _task_text(name: str, types: list[Ty], attributes: str) -> str:
    """The function the pool calls: ``void task(ptr env, i64 task, i64 tasks)``."""
    lines = [
        f"define internal void @{name}(ptr %env, i64 %task, i64 %tasks) {attributes} {{",
        "  %begin = load i64, ptr %env, align 8",
        "  %extentp = getelementptr inbounds i64, ptr %env, i64 1",
        "  %extent = load i64, ptr %extentp, align 8",
        "  %errorp = getelementptr inbounds i64, ptr %env, i64 2",
        "  %low = mul i64 %task, %extent",
        "  %high = add i64 %low, %extent",
        "  %low1 = udiv i64 %low, %tasks",
        "  %high1 = udiv i64 %high, %tasks",
        "  %first = add i64 %begin, %low1",
        "  %last = add i64 %begin, %high1",
    ]
    args: list[str] = []
    for k, t in enumerate(types):
        lines.append(f"  %p{k} = getelementptr inbounds i64, ptr %env, i64 {k + 3}")
        lines.append(f"  %c{k} = load {t.text}, ptr %p{k}, align 8")
        args.append(f"{t.text} %c{k}")
    lines += [
        f"  %code = call i32 @{name}.body({', '.join([*args, 'i64 %first', 'i64 %last'])})",
        "  %failed = icmp ne i32 %code, 0",
        "  br i1 %failed, label %bad, label %good",
        "bad:",
        "  store atomic i32 %code, ptr %errorp monotonic, align 8",
        "  br label %good",
        "good:",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)


def _updates(s: Store, value: Binary) -> bool:
    """Whether a store's value is an operation on the element it replaces."""
    return any(
        isinstance(side, Load) and side.buffer is s.buffer and side.indices == s.indices
        for side in (value.a, value.b)
    )
