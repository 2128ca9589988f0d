"""The entry of a native function: a METH_FASTCALL builtin as LLVM IR.

Checks that the arguments are plain numpy arrays of the right dtype and shape, binds the symbols,
allocates the outputs and the arena, runs the native function (without the GIL if there is enough
work), and gives back arrays. Whatever it does not expect goes to ``self``, the Python function that
handles or refuses it, unless it is tensors that can be viewed as arrays (`exchange`).
"""

from __future__ import annotations

from unity.codegen.vm.native import interpreted, late
from unity.codegen.vm.native.arguments import check_arguments
from unity.codegen.vm.native.call import DEPTH
from unity.codegen.vm.native.layout import Layout, byte_count
from unity.codegen.vm.native.prelude import api
from unity.codegen.vm.native.printing import PRINTED, tell_unfinished
from unity.codegen.vm.native.results import allocate_outputs, gather_late_outputs, give_results
from unity.codegen.vm.native.writer import EntryWriter
from unity.runtime import bytecode as bc
from unity.runtime import native_info as n

RELEASE_BYTES = 1 << 14  # less memory than this is not worth 35 ns for releasing the GIL
ARENA_HEADER = 64  # an arena starts with: the next free one, its size


def entry_text(
    index: int,
    layout: Layout,
    dtypes: list[str],
    *,
    uses_constants: bool,
    prints: bool,
    asks: bool,
) -> str:
    """The text of ``unity_entry_<index>`` and ``unity_release_<index>``.

    Args:
        index: The function's index in the program.
        layout: Its plan.
        dtypes: The dtype table of the module, added to.
        uses_constants: Whether it reads constants (weights), which is work worth releasing the GIL.
        prints: Whether something in the module prints.
        asks: Whether it has the interpreter run functions.
    """
    entry = EntryWriter(index, layout, dtypes)
    _declare(entry)
    check_arguments(entry)
    allocate_outputs(entry)
    _take_table(entry)
    _take_arena(entry)
    _run(entry, always_release=uses_constants)
    give_results(entry, asks=asks)
    _exits(entry, prints=prints, asks=asks)
    header = (
        f"define ptr @unity_entry_{index}(ptr %self, ptr %args, i64 %count, ptr %names) nounwind {{"
    )
    free = f"@unity_free_{index} = internal global ptr null"
    tables = [late.kept_text(index, layout)] if layout.late else []
    release = _release_text(index, has_tables=bool(tables))
    return "\n".join([free, *tables, header, *entry.t.lines, "}", release])


def _declare(e: EntryWriter) -> None:
    """The tables of a call, in the entry's first block."""
    t, layout = e.t, e.layout
    t.block("entry")
    t.do(f"%slots = alloca [{layout.slots + 1} x i64]")
    t.do(f"%inputs = alloca [{len(layout.inputs) + 1} x ptr]")
    t.do(f"%outputs = alloca [{len(layout.outputs) + 1} x ptr]")
    t.do(f"%objects = alloca [{len(layout.outputs) + 1} x ptr]")
    t.do(f"%values = alloca [{len(layout.values) + 1} x i64]")
    t.do(f"%dims = alloca [{sum(len(o.shape or ()) for o in layout.outputs) + 1} x i64]")
    t.do(f"%poll = alloca [{interpreted.WORDS} x i64]")
    if layout.late_outputs:
        t.do("%outcome = alloca i64")
    t.do(f"%scalars = alloca [{len(layout.inputs) + 1} x i64]")


def _take_table(e: EntryWriter) -> None:
    """A table of memory whose size is read, with what a call before left in it (`late`)."""
    if e.layout.late:
        e.t.do(f"%late = call ptr @unity_take_table_{e.index}()")
        e.go_on_if(e.t.let("icmp ne ptr %late, null"), f"drop{len(e.layout.outputs)}")


def _take_arena(e: EntryWriter) -> None:
    """An arena from the free list (the GIL guards it), or a new one."""
    if not e.layout.places:
        e.t.do("br label %run")
        return
    t = e.t
    head = t.let(f"load ptr, ptr @unity_free_{e.index}")
    t.do(f"br i1 {t.let(f'icmp ne ptr {head}, null')}, label %reuse, label %grow")
    t.block("reuse")
    t.do(f"store ptr {t.let(f'load ptr, ptr {head}')}, ptr @unity_free_{e.index}")
    fits = t.let(f"icmp uge i64 {t.load('i64', head, 1, 'i64')}, %arena_bytes")
    t.do(f"br i1 {fits}, label %arena_ready, label %replace")
    t.block("replace")
    t.do(f"call void {e.api('free')}(ptr {t.load('ptr', head, 2, 'ptr')})")
    t.do("br label %grow")
    t.block("grow")
    size = t.let(f"add i64 %arena_bytes, {2 * ARENA_HEADER}")
    raw = t.let(f"call ptr {e.api('malloc')}(i64 {size})")
    e.go_on_if(t.let(f"icmp ne ptr {raw}, null"), "no_memory")
    end = t.let(f"ptrtoint ptr {t.at(raw, ARENA_HEADER - 1)} to i64")
    made = t.let(f"inttoptr i64 {t.let(f'and i64 {end}, {-ARENA_HEADER}')} to ptr")
    t.store("i64", "%arena_bytes", made, 1)
    t.store("ptr", raw, made, 2)
    grown = f"b{e.blocks - 1}"
    t.do("br label %arena_ready")
    t.block("arena_ready")
    t.do(f"%arena = phi ptr [ {head}, %reuse ], [ {made}, %{grown} ]")
    t.do("br label %run")


def _run(e: EntryWriter, *, always_release: bool) -> None:
    """Run, without the GIL if there is enough to do."""
    t = e.t
    t.block("run")
    has_arena = bool(e.layout.places)
    base = t.at("%arena", ARENA_HEADER) if has_arena else "null"
    t.store("i64", "0", "%poll", 0)
    t.store("ptr", "null", "%poll", 1)
    t.store("i64", "0", "%poll", DEPTH)
    t.store("i64", "0", "%poll", PRINTED)
    t.store("i64", "0", "%poll", interpreted.ASKED)
    if e.layout.late:
        late.use(t, "%late")
    t.do(f"br i1 {_worth_releasing(e, always_release)}, label %leave, label %go")
    t.block("leave")
    state = t.let(f"call ptr {e.api('PyEval_SaveThread')}()")
    t.store("ptr", state, "%poll", 1)
    t.do("br label %go")
    t.block("go")
    t.do(
        f"%code = call i64 @unity_run_{e.index}"
        f"(ptr %inputs, ptr %outputs, ptr %slots, ptr {base}, ptr %poll)"
    )
    left = t.load("ptr", "%poll", 1, "ptr")
    t.do(f"br i1 {t.let(f'icmp eq ptr {left}, null')}, label %back, label %take")
    t.block("take")
    t.do(f"call void {e.api('PyEval_RestoreThread')}(ptr {left})")
    t.do("br label %back")
    t.block("back")
    if e.layout.late_outputs:
        gather_late_outputs(e)
    if e.layout.late:
        t.do(f"call void @unity_give_table_{e.index}(ptr %late)")
    if has_arena:
        t.do(f"store ptr {t.let(f'load ptr, ptr @unity_free_{e.index}')}, ptr %arena")
        t.do(f"store ptr %arena, ptr @unity_free_{e.index}")
    if e.layout.late_outputs:
        t.do("%ended = load i64, ptr %outcome")
    e.go_on_if(t.let(f"icmp eq i64 {_ended(e)}, 0"), "failed")


def _ended(e: EntryWriter) -> str:
    """How the run ended, and what came of its results."""
    return "%ended" if e.layout.late_outputs else "%code"


def _worth_releasing(e: EntryWriter, always: bool) -> str:
    """Whether the call touches enough memory."""
    t = e.t
    if always or e.layout.late or e.layout.late_outputs:
        return "true"
    if any(isinstance(i, bc.Jump | bc.CallFunction) for i in e.layout.code.code):
        return "true"
    total = "%arena_bytes"
    for spec in (*e.layout.inputs, *e.layout.outputs):
        if not isinstance(spec, bc.TensorSpec):
            continue
        total = t.let(f"add i64 {total}, {t.size(byte_count(spec))}")
    return t.let(f"icmp ugt i64 {total}, {RELEASE_BYTES}")


def _exits(e: EntryWriter, *, prints: bool, asks: bool) -> None:
    """Failure and the slow way; ``drop<K>`` gives up the first K outputs and goes there."""
    t, count = e.t, len(e.layout.outputs)
    t.block("failed")
    for k in range(count):
        array = t.load("ptr", "%objects", k, "ptr")
        t.do(f"call void {e.api('Py_DecRef')}(ptr {array})")
    stopped = t.let(f"icmp eq i64 {_ended(e)}, {n.INTERRUPTED}")
    t.do(f"br i1 {stopped}, label %null, label %wrong")
    t.block("wrong")
    if asks:
        interpreted.tell_end(t, str(n.FAILED), "badly")
    if prints:
        tell_unfinished(t)
    t.do("br label %slow")
    t.block("slow")
    if any(isinstance(spec, bc.ObjectSpec) for spec in e.layout.inputs):  # may be a tensor
        handler, given = e.api("PyObject_Vectorcall"), ""
    else:
        handler, given = "@unity_exchange", f"ptr @unity_entry_{e.index}, "
    given += "ptr %self, ptr %args, i64 %count, ptr %names"
    t.do(f"ret ptr {t.let(f'call ptr {handler}({given})')}")
    if e.layout.places:
        t.block("no_memory")
        if e.layout.late:
            t.do(f"call void @unity_give_table_{e.index}(ptr %late)")
        t.do(f"br label %drop{count}")
    for k in range(count, -1, -1):
        t.block(f"drop{k}")
        if k:
            array = t.load("ptr", "%objects", k - 1, "ptr")
            t.do(f"call void {e.api('Py_DecRef')}(ptr {array})")
            t.do(f"br label %drop{k - 1}")
    t.do(f"call void {e.api('PyErr_Clear')}()")  # the slow way says what there's no room for
    t.do("br label %slow")
    t.block("null")
    t.do("ret ptr null")


def _release_text(index: int, *, has_tables: bool) -> str:
    """Frees the arenas and tables kept for reuse; nothing may be running."""
    tables = f"call void @unity_free_tables_{index}()" if has_tables else ""
    return f"""\
define void @unity_release_{index}() nounwind {{
entry:
  {tables}
  br label %next
next:
  %head = load ptr, ptr @unity_free_{index}
  %none = icmp eq ptr %head, null
  br i1 %none, label %end, label %drop
drop:
  %after = load ptr, ptr %head
  store ptr %after, ptr @unity_free_{index}
  %place = getelementptr ptr, ptr %head, i64 2
  %raw = load ptr, ptr %place
  %free = load ptr, ptr getelementptr (ptr, ptr @unity_python, i64 {api("free")})
  call void %free(ptr %raw)
  br label %next
end:
  ret void
}}"""
