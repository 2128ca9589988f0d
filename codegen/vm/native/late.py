"""Memory whose size is known only while a function runs: sizes read from tensors decide about it.

A call has a table of the places of such tensors, two words each: the memory, and how many bytes it
has. A place gets memory, or more of it, where its tensor is allocated (``unity_room``). Tables of
what Python calls are kept for the next call, as arenas are: fresh memory costs more than most that
is done with it. Other callers free what is in theirs (``unity_vacate``) once results are taken out.
"""

from __future__ import annotations

from unity.codegen.vm.native.layout import Layout
from unity.codegen.vm.native.text import Text
from unity.ir.arrays.aligned import LINE

TABLE = 3
"""The word of the poll state that holds the table of the call that runs."""
WORDS = 2
"""Words of a place."""


def late_text() -> str:
    """The text of ``ptr unity_room(place, bytes)`` and ``void unity_vacate(table, places)``.

    Declared is also what tells whether sizes that were read are too large (`overflow`).

    Memory begins at a line and is null where there is none; what a place had, if it was less, is
    freed first: what it held is dead. What grows gets some more, lest it move at each step.
    """
    return f"""\
declare {{ i64, i1 }} @llvm.smul.with.overflow.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal ptr @unity_room(ptr %place, i64 %bytes) nounwind {{
entry:
  %old = load ptr, ptr %place
  %size_at = getelementptr i64, ptr %place, i64 1
  %size = load i64, ptr %size_at
  %none = icmp eq ptr %old, null
  %small = icmp ult i64 %size, %bytes
  %wanted = or i1 %none, %small
  br i1 %wanted, label %grow, label %ready
grow:
  call void @unity_give_memory(ptr %old)
  store ptr null, ptr %place
  %grown = lshr i64 %size, 1
  %spare = select i1 %none, i64 0, i64 %grown
  %room = add i64 %bytes, %spare
  %more = add i64 %room, {2 * LINE}
  %new = call ptr @unity_take_memory(i64 %more)
  store ptr %new, ptr %place
  store i64 %room, ptr %size_at
  %made = icmp ne ptr %new, null
  br i1 %made, label %ready, label %full
ready:
  %raw = load ptr, ptr %place
  %end = getelementptr i8, ptr %raw, i64 {LINE - 1}
  %number = ptrtoint ptr %end to i64
  %aligned = and i64 %number, {-LINE}
  %memory = inttoptr i64 %aligned to ptr
  ret ptr %memory
full:
  ret ptr null
}}

define internal void @unity_vacate(ptr %table, i64 %places) nounwind {{
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %after, %one ]
  %more = icmp ult i64 %k, %places
  br i1 %more, label %one, label %end
one:
  %at = mul i64 %k, {WORDS}
  %place = getelementptr i64, ptr %table, i64 %at
  %memory = load ptr, ptr %place
  call void @unity_give_memory(ptr %memory)
  store ptr null, ptr %place
  %after = add i64 %k, 1
  br label %next
end:
  ret void
}}"""


def offset(layout: Layout, name: str) -> int:
    """Where a place's words are in the table of its function."""
    return WORDS * list(layout.late).index(name)


def words(layout: Layout) -> int:
    """The words of a function's table."""
    return WORDS * len(layout.late)


def table(t: Text) -> str:
    """The instruction that gives a function the table of the call."""
    return f"load ptr, ptr {t.at('%poll', TABLE, 'i64')}"


def kept_text(index: int, layout: Layout) -> str:
    """The text of ``ptr unity_take_table_<index>()``, of what gives it back, and of what frees all.

    The GIL guards the list of tables. In front of a table is a line that holds the next one.
    """
    head = f"@unity_tables_{index}"
    size = LINE + 8 * words(layout)
    return f"""\
{head} = internal global ptr null

define internal ptr @unity_take_table_{index}() nounwind {{
entry:
  %first = load ptr, ptr {head}
  %none = icmp eq ptr %first, null
  br i1 %none, label %new, label %reuse
reuse:
  %next = load ptr, ptr %first
  store ptr %next, ptr {head}
  %old = getelementptr i8, ptr %first, i64 {LINE}
  ret ptr %old
new:
  %made = call ptr @unity_take_memory(i64 {size})
  %full = icmp eq ptr %made, null
  br i1 %full, label %no, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %made, i8 0, i64 {size}, i1 false)
  %table = getelementptr i8, ptr %made, i64 {LINE}
  ret ptr %table
no:
  ret ptr null
}}

define internal void @unity_give_table_{index}(ptr %table) nounwind {{
entry:
  %made = getelementptr i8, ptr %table, i64 -{LINE}
  %next = load ptr, ptr {head}
  store ptr %next, ptr %made
  store ptr %made, ptr {head}
  ret void
}}

define internal void @unity_free_tables_{index}() nounwind {{
entry:
  br label %next
next:
  %first = load ptr, ptr {head}
  %none = icmp eq ptr %first, null
  br i1 %none, label %end, label %one
one:
  %after = load ptr, ptr %first
  store ptr %after, ptr {head}
  %table = getelementptr i8, ptr %first, i64 {LINE}
  call void @unity_vacate(ptr %table, i64 {len(layout.late)})
  call void @unity_give_memory(ptr %first)
  br label %next
end:
  ret void
}}"""


def begin(t: Text, layout: Layout, table: str) -> None:
    """Empty a table and say that it is that of the call that follows."""
    for k in range(0, words(layout), WORDS):
        t.store("ptr", "null", t.at(table, k, "i64"), 0)
    use(t, table)


def use(t: Text, table: str) -> None:
    """Say that a table is that of the call that follows."""
    t.store("ptr", table, "%poll", TABLE)


def vacate(t: Text, layout: Layout, table: str) -> None:
    """Free what is in a table."""
    t.do(f"call void @unity_vacate(ptr {table}, i64 {len(layout.late)})")
