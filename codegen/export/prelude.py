"""What an exported library's functions share: constants, threads, working memory."""

from __future__ import annotations

from collections.abc import Sequence

from unity.ir.arrays.aligned import LINE

from .faults import fault_text


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
    shared = _PRELUDE.format(
        prefix=prefix, threads=threads, count=max(len(constants), 1), table=table, asked=asked,
        line=LINE, twice=2 * LINE, less=LINE - 1,
    )  # fmt: skip
    return f"{shared}\n{fault_text()}"


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

define internal ptr @unity_take_memory(i64 %bytes) nounwind alwaysinline {{
  %memory = call ptr @malloc(i64 %bytes)
  ret ptr %memory
}}

define internal void @unity_give_memory(ptr %memory) nounwind alwaysinline {{
  call void @free(ptr %memory)
  ret void
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
"""
