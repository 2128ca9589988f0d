"""The functions that C calls, as LLVM IR: tensors checked, memory planned, the native function run.

For each function F of the program, ``i32 P_F(ptr inputs, ptr outputs)`` and ``i32 P_F_shapes(ptr
inputs, ptr dims)``, on arrays of pointers. Results other than 0 are places in a table of messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from unity.codegen.vm.layout import Layout
from unity.codegen.vm.native_body import fact_conditions
from unity.codegen.vm.native_text import Text
from unity.ir.aligned import LINE
from unity.ir.dtype import dtype
from unity.runtime import program as p
from unity.runtime.sizes import Size, Slot, size_text

from . import dlpack

_FAULTS = (
    "is NULL, or has no data",
    "is not on the cpu",
    "is not {dtype}",
    "has not {rank} axes",
    "is not in C order",
    "is not aligned to its elements",
)


@dataclass(slots=True)
class Messages:
    """What results that are not 0 mean."""

    texts: list[str] = field(default_factory=list)

    def code(self, text: str) -> int:
        """The result that means a text."""
        self.texts.append(text)
        return len(self.texts)


def entry_text(prefix: str, index: int, layout: Layout, messages: Messages) -> str:
    """The functions of C for a function of the program.

    Args:
        prefix: What their names begin with.
        index: The function's index in the program.
        layout: Its plan.
        messages: Added to.
    """
    parts = [
        _bind(index, layout, messages),
        _shapes(prefix, index, layout, messages),
        _call(prefix, index, layout, messages),
    ]
    return "\n".join(parts)


class _Function:
    """State while a function is written: what fails leaves with a code."""

    def __init__(self, messages: Messages) -> None:
        self.t, self.messages = Text(), messages
        self.fails: list[int] = []
        self.blocks = 0

    def require(self, condition: str, message: str) -> None:
        """Leave with a message unless the condition holds."""
        code = self.messages.code(message)
        self.fails.append(code)
        self.leave_unless(condition, f"fail{code}")

    def leave_unless(self, condition: str, label: str) -> None:
        """Leave for a block unless the condition holds."""
        following = f"c{self.blocks}"
        self.blocks += 1
        self.t.do(f"br i1 {condition}, label %{following}, label %{label}")
        sizes = dict(self.t.sizes)
        self.t.block(following)
        self.t.sizes.update(sizes)  # the block before is this one's only predecessor

    def hand_on(self, code: str) -> None:
        """Leave with the result of a call unless it is 0."""
        good = self.t.let(f"icmp eq i32 {code}, 0")
        label = f"bad{self.blocks}"
        self.leave_unless(good, label)
        rest = self.t.lines.pop()
        self.t.lines += [f"{label}:", f"  ret i32 {code}", rest]

    def tensor(self, tensor: str, spec: p.TensorSpec, what: str) -> None:
        """Check all of a tensor but its sizes."""
        assert spec.dtype is not None
        rank = len(spec.shape or ())
        texts = [f.format(dtype=spec.dtype, rank=rank) for f in _FAULTS]
        codes = [self.messages.code(f"{what} {text}") for text in texts]
        word = dlpack.type_word(spec.dtype)
        size = dtype(spec.dtype).bytes
        fault = self.t.let(
            f"call i32 @unity_c_fault(ptr {tensor}, i32 {rank}, i32 {word}, i64 {size})"
        )
        first = self.t.let(f"add i32 {fault}, {codes[0] - 1}")
        none = self.t.let(f"icmp eq i32 {fault}, 0")
        self.hand_on(self.t.let(f"select i1 {none}, i32 0, i32 {first}"))

    def data(self, tensor: str) -> str:
        """Where a tensor's elements are."""
        base = self.t.load("ptr", tensor, dlpack.DATA)
        return self.t.at(base, self.t.load("i64", tensor, dlpack.BYTE_OFFSET))

    def finished(self, header: str) -> str:
        """The text of the function."""
        for code in self.fails:
            self.t.block(f"fail{code}")
            self.t.do(f"ret i32 {code}")
        return "\n".join([f"{header} nounwind {{", *self.t.lines, "}"])


def _bind(index: int, layout: Layout, messages: Messages) -> str:
    """``unity_c_bind_K(inputs, slots, data)``: check the inputs, bind the symbols."""
    binder = _Binder(messages, layout)
    binder.t.block("entry")
    for k, (spec, param) in enumerate(zip(layout.inputs, layout.code.params, strict=True)):
        tensor = binder.t.load("ptr", "%inputs", k, "ptr")
        if isinstance(spec, p.TensorSpec):
            binder.tensor_input(k, tensor, spec, f"input {param.name}")
        else:
            binder.shape_input(k, tensor, spec.dims or (), f"input {param.name}")
    binder.finish()
    params = "ptr %inputs, ptr %slots, ptr %data"
    return binder.finished(f"define internal i32 @unity_c_bind_{index}({params})")


class _Binder(_Function):
    """State while inputs are checked: the symbols bound so far, and the sizes to compare then."""

    def __init__(self, messages: Messages, layout: Layout) -> None:
        super().__init__(messages)
        self.symbols = layout.code.symbols
        self.bound: set[int] = set()
        self.later: list[tuple[Size, str, str]] = []

    def tensor_input(self, k: int, tensor: str, spec: p.TensorSpec, what: str) -> None:
        """An input whose axes have sizes."""
        t = self.t
        self.tensor(tensor, spec, what)
        t.store("ptr", self.data(tensor), "%data", k)
        shape = t.load("ptr", tensor, dlpack.SHAPE)
        for axis, size in enumerate(spec.shape or ()):
            self.size(size, t.load("i64", shape, axis, "i64"), f"{what} axis {axis}")

    def shape_input(self, k: int, tensor: str, dims: Sequence[Size], what: str) -> None:
        """An input that is a shape: a tensor of int64, whose elements are sizes."""
        t = self.t
        self.tensor(tensor, p.TensorSpec("int64", (len(dims),)), what)
        count = t.load("i64", t.load("ptr", tensor, dlpack.SHAPE), 0, "i64")
        self.require(
            t.let(f"icmp eq i64 {count}, {len(dims)}"), f"{what} has not {len(dims)} sizes"
        )
        data = self.data(tensor)
        t.store("ptr", "null", "%data", k)
        for i, size in enumerate(dims):
            self.size(size, t.load("i64", data, i, "i64"), f"{what}[{i}]")

    def size(self, size: Size, actual: str, where: str) -> None:
        """Bind a symbol, or keep a size to be compared when all are bound."""
        t = self.t
        if not isinstance(size, Slot) or size.index in self.bound:
            self.later.append((size, actual, where))
            return
        self.bound.add(size.index)
        t.store("i64", actual, "%slots", size.index)
        t.sizes[size] = actual
        info = self.symbols[size.index]
        self.require(t.let(f"icmp sge i64 {actual}, 0"), f"{where} is negative")
        for _, condition in fact_conditions(t, actual, info):
            self.require(condition, f"{where}: {info.name} must be {_facts(info)}")

    def finish(self) -> None:
        """Compare what is left."""
        names = [s.name for s in self.symbols]
        for size, actual, where in self.later:
            same = self.t.let(f"icmp eq i64 {self.t.size(size)}, {actual}")
            self.require(same, f"{where} is not {size_text(size, names)}")
        self.t.do("ret i32 0")


def _facts(info: p.SymbolInfo) -> str:
    parts = [
        f"at least {info.min}" if info.min > 0 else "",
        f"at most {info.max}" if info.max is not None else "",
        f"a multiple of {info.multiple_of}" if info.multiple_of > 1 else "",
    ]
    return ", ".join(part for part in parts if part)


def _planned(f: _Function, index: int, layout: Layout) -> str:
    """The inputs bound and the outputs' dims known; how large the arena is."""
    t = f.t
    t.block("entry")
    t.do(f"%slots = alloca [{layout.slots + 1} x i64]")
    t.do(f"%data = alloca [{len(layout.inputs) + 1} x ptr]")
    t.do(f"%flat = alloca [{sum(len(o.shape or ()) for o in layout.outputs) + 1} x i64]")
    f.hand_on(t.let(f"call i32 @unity_c_bind_{index}(ptr %inputs, ptr %slots, ptr %data)"))
    bytes_ = t.let(f"call i64 @unity_plan_{index}(ptr %slots, ptr %flat)")
    f.require(t.let(f"icmp sge i64 {bytes_}, 0"), "the inputs are too small: a size is negative")
    return bytes_


def _shapes(prefix: str, index: int, layout: Layout, m: Messages) -> str:
    f = _Function(m)
    _planned(f, index, layout)
    t, first = f.t, 0
    for k, spec in enumerate(layout.outputs):
        dims = t.load("ptr", "%dims", k, "ptr")
        for axis in range(len(spec.shape or ())):
            t.store("i64", t.load("i64", "%flat", first + axis, "i64"), dims, axis)
        first += len(spec.shape or ())
    t.do("ret i32 0")
    return f.finished(f"define i32 @{prefix}_{layout.code.name}_shapes(ptr %inputs, ptr %dims)")


def _call(prefix: str, index: int, layout: Layout, m: Messages) -> str:
    f = _Function(m)
    bytes_ = _planned(f, index, layout)
    t, first = f.t, 0
    t.do(f"%outs = alloca [{len(layout.outputs) + 1} x ptr]")
    names, inside = layout.code.output_names, dict(layout.code.aliases)
    for k, spec in enumerate(layout.outputs):
        if k in inside:  # it is an input's own tensor, written over
            first += len(spec.shape or ())
            continue
        what = f"output {names[k]}" if k < len(names) else f"output {k}"
        tensor = t.load("ptr", "%outputs", k, "ptr")
        f.tensor(tensor, spec, what)
        shape = t.load("ptr", tensor, dlpack.SHAPE)
        for axis in range(len(spec.shape or ())):
            wanted = t.load("i64", "%flat", first + axis, "i64")
            actual = t.load("i64", shape, axis, "i64")
            same = t.let(f"icmp eq i64 {wanted}, {actual}")
            f.require(same, f"{what} axis {axis} is not of the size that the inputs give it")
        first += len(spec.shape or ())
        t.store("ptr", f.data(tensor), "%outs", k)
    started = t.let("call i1 @unity_c_start()")
    f.require(started, "the system gives no leave to use the tile registers of this processor")
    arena = t.let(f"call ptr @unity_c_take(i64 {bytes_})")
    f.require(t.let(f"icmp ne ptr {arena}, null"), "there is no memory")
    run = t.let(
        f"call i64 @unity_run_{index}(ptr %data, ptr %outs, ptr %slots, "
        f"ptr {t.at(arena, LINE)}, ptr null)"
    )
    t.do(f"call void @unity_c_give(ptr {arena})")
    f.require(t.let(f"icmp eq i64 {run}, 0"), "a check inside the program failed")
    t.do("ret i32 0")
    return f.finished(f"define i32 @{prefix}_{layout.code.name}(ptr %inputs, ptr %outputs)")


def prelude(prefix: str, threads: int, constants: Sequence[int], tiles: bool) -> str:
    """What all the functions share, and the functions of C beside them.

    Args:
        prefix: What names begin with.
        threads: How many threads are used until something else is said.
        constants: Where each constant begins in ``unity_c_data``.
        tiles: Whether kernels use the tile registers of AMX, for which leave has to be asked.
    """
    places = ", ".join(f"ptr getelementptr (i8, ptr @unity_c_data, i64 {at})" for at in constants)
    table = f"[{places}]" if constants else "zeroinitializer"
    asked = "call i64 (i64, ...) @syscall(i64 158, i64 4131, i64 18)" if tiles else "add i64 0, 0"
    return _PRELUDE.format(
        prefix=prefix, threads=threads, count=max(len(constants), 1), table=table, asked=asked,
        line=LINE, twice=2 * LINE, less=LINE - 1,
        ndim=dlpack.NDIM, device=dlpack.DEVICE, dtype=dlpack.DTYPE, shape=dlpack.SHAPE,
        strides=dlpack.STRIDES, offset=dlpack.BYTE_OFFSET, cpu=dlpack.CPU,
    )  # fmt: skip


def messages_text(prefix: str, messages: Messages) -> str:
    """``P_message(code)``: what a result means."""
    lines: list[str] = []
    for i, text in enumerate(("no error", *messages.texts, "no such code")):
        data = text.encode() + b"\0"
        shown = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02x}" for b in data)
        lines.append(f'@unity_c_m{i} = internal constant [{len(data)} x i8] c"{shown}"')
    last = len(messages.texts) + 1
    table = ", ".join(f"ptr @unity_c_m{i}" for i in range(last + 1))
    return "\n".join(
        [
            *lines,
            f"@unity_c_messages = internal constant [{last + 1} x ptr] [{table}]",
            f"define ptr @{prefix}_message(i32 %code) nounwind {{",
            f"  %known = icmp ult i32 %code, {last}",
            f"  %index = select i1 %known, i32 %code, i32 {last}",
            "  %place = getelementptr ptr, ptr @unity_c_messages, i32 %index",
            "  %text = load ptr, ptr %place",
            "  ret ptr %text",
            "}",
        ]
    )


_PRELUDE = """\
@unity_c_data = external hidden constant i8
@unity_constants = internal constant [{count} x ptr] {table}
@unity_c_started = internal global i32 0
@unity_c_kept = internal global ptr null
declare void @unity_set_threads(i32, i32)
declare i32 @unity_thread_count()
declare void @unity_limit_threads(i32)
declare ptr @malloc(i64)
declare void @free(ptr)
declare i64 @syscall(i64, ...)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)

define internal i1 @unity_poll(ptr %state) nounwind alwaysinline {{
  ret i1 false
}}

define void @{prefix}_set_threads(i32 %wanted) nounwind {{
entry:
  %few = icmp slt i32 %wanted, 1
  %n = select i1 %few, i32 1, i32 %wanted
  store atomic i32 1, ptr @unity_c_started seq_cst, align 4
  %now = call i32 @unity_thread_count()
  %more = icmp sgt i32 %n, %now
  br i1 %more, label %grow, label %limit
grow:
  call void @unity_set_threads(i32 %n, i32 -1)
  br label %limit
limit:
  call void @unity_limit_threads(i32 %n)
  ret void
}}

; True once everything is ready: the threads, and the system's leave to use tile registers.
define internal i1 @unity_c_start() nounwind {{
entry:
  %state = load atomic i32, ptr @unity_c_started acquire, align 4
  %done = icmp eq i32 %state, 2
  br i1 %done, label %ready, label %ask
ask:
  %refused = {asked}
  %fine = icmp eq i64 %refused, 0
  br i1 %fine, label %allowed, label %not
not:
  ret i1 false
allowed:
  %said = icmp eq i32 %state, 1
  br i1 %said, label %set, label %choose
choose:
  call void @{prefix}_set_threads(i32 {threads})
  br label %set
set:
  store atomic i32 2, ptr @unity_c_started release, align 4
  br label %ready
ready:
  ret i1 true
}}

; Working memory: the piece of the last call if it is free and large enough. It begins with its size
; and what malloc gave.
define internal ptr @unity_c_take(i64 %bytes) nounwind {{
entry:
  %kept = atomicrmw xchg ptr @unity_c_kept, ptr null acq_rel
  %none = icmp eq ptr %kept, null
  br i1 %none, label %make, label %look
look:
  %size = load i64, ptr %kept
  %enough = icmp uge i64 %size, %bytes
  br i1 %enough, label %take, label %drop
take:
  ret ptr %kept
drop:
  call void @unity_c_free(ptr %kept)
  br label %make
make:
  %total = add i64 %bytes, {twice}
  %raw = call ptr @malloc(i64 %total)
  %failed = icmp eq ptr %raw, null
  br i1 %failed, label %no, label %made
no:
  ret ptr null
made:
  %address = ptrtoint ptr %raw to i64
  %up = add i64 %address, {less}
  %whole = and i64 %up, -{line}
  %new = inttoptr i64 %whole to ptr
  store i64 %bytes, ptr %new
  %place = getelementptr i8, ptr %new, i64 8
  store ptr %raw, ptr %place
  ret ptr %new
}}

define internal void @unity_c_give(ptr %arena) nounwind {{
entry:
  %old = atomicrmw xchg ptr @unity_c_kept, ptr %arena acq_rel
  %none = icmp eq ptr %old, null
  br i1 %none, label %end, label %drop
drop:
  call void @unity_c_free(ptr %old)
  br label %end
end:
  ret void
}}

define internal void @unity_c_free(ptr %arena) nounwind {{
  %place = getelementptr i8, ptr %arena, i64 8
  %raw = load ptr, ptr %place
  call void @free(ptr %raw)
  ret void
}}

; 0, or 1 + the index of what is wrong with a tensor.
define internal i32 @unity_c_fault(ptr %tensor, i32 %rank, i32 %type, i64 %size) nounwind {{
entry:
  %null = icmp eq ptr %tensor, null
  br i1 %null, label %f1, label %device
device:
  %at.device = getelementptr i8, ptr %tensor, i64 {device}
  %where = load i32, ptr %at.device
  %here = icmp eq i32 %where, {cpu}
  br i1 %here, label %dtype, label %f2
dtype:
  %at.dtype = getelementptr i8, ptr %tensor, i64 {dtype}
  %word = load i32, ptr %at.dtype
  %same = icmp eq i32 %word, %type
  br i1 %same, label %ndim, label %f3
ndim:
  %at.ndim = getelementptr i8, ptr %tensor, i64 {ndim}
  %axes = load i32, ptr %at.ndim
  %fits = icmp eq i32 %axes, %rank
  br i1 %fits, label %order, label %f4
order:
  %at.shape = getelementptr i8, ptr %tensor, i64 {shape}
  %shape = load ptr, ptr %at.shape
  %at.strides = getelementptr i8, ptr %tensor, i64 {strides}
  %strides = load ptr, ptr %at.strides
  %plain = icmp eq ptr %strides, null
  %last = sext i32 %rank to i64
  br label %next
next:
  %i = phi i64 [ %last, %order ], [ %j, %step ]
  %count = phi i64 [ 1, %order ], [ %grown, %step ]
  %odd = phi i1 [ false, %order ], [ %odder, %step ]
  %end = icmp eq i64 %i, 0
  br i1 %end, label %counted, label %axis
axis:
  %j = sub i64 %i, 1
  %at.n = getelementptr i64, ptr %shape, i64 %j
  %n = load i64, ptr %at.n
  br i1 %plain, label %step, label %stride
stride:
  %at.s = getelementptr i64, ptr %strides, i64 %j
  %s = load i64, ptr %at.s
  br label %step
step:
  %actual = phi i64 [ %count, %axis ], [ %s, %stride ]
  %differs = icmp ne i64 %actual, %count
  %long = icmp ne i64 %n, 1
  %wrong = and i1 %differs, %long
  %odder = or i1 %odd, %wrong
  %grown = mul i64 %count, %n
  br label %next
counted:
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %f0, label %ordered
ordered:
  br i1 %odd, label %f5, label %data
data:
  %base = load ptr, ptr %tensor
  %nothing = icmp eq ptr %base, null
  br i1 %nothing, label %f1, label %aligned
aligned:
  %at.offset = getelementptr i8, ptr %tensor, i64 {offset}
  %offset = load i64, ptr %at.offset
  %begin = ptrtoint ptr %base to i64
  %first = add i64 %begin, %offset
  %rest = urem i64 %first, %size
  %straight = icmp eq i64 %rest, 0
  br i1 %straight, label %f0, label %f6
f0:
  ret i32 0
f1:
  ret i32 1
f2:
  ret i32 2
f3:
  ret i32 3
f4:
  ret i32 4
f5:
  ret i32 5
f6:
  ret i32 6
}}
"""
