"""What every native module begins with: tables that the runtime fills, and the look for signals."""

from __future__ import annotations

from unity.runtime.native_info import API

_CYCLES = {  # instruction and about 20 to 60 ms of it
    True: ("llvm.readcyclecounter", 1 << 27),
    False: ("llvm.readsteadycounter", 1 << 20),  # arm's and risc-v's cycle counters may trap
}


def api(name: str) -> int:
    """The index of a runtime function in the table."""
    return API.index(name)


def prelude_text(constants: int, dtypes: int, triple: str) -> str:
    """Tables, declarations, ``unity_take_memory``, ``unity_give_memory`` and ``unity_poll``.

    The first two are malloc and free, which modules for C (`codegen.export`) find elsewhere.

    ``i1 unity_poll(ptr state)`` is true when a signal handler raised an exception. It takes the GIL
    to ask, so it asks only when some time has passed since it last did; `state` holds that time and
    the thread state to take the GIL with, null while it is held.
    """
    counter, limit = _CYCLES[triple.startswith(("x86_64", "i686"))]
    return f"""\
@unity_python = global [{len(API)} x ptr] zeroinitializer
@unity_constants = global [{max(constants, 1)} x ptr] zeroinitializer
@unity_dtypes = global [{max(dtypes, 1)} x ptr] zeroinitializer
@unity_table_lengths = constant [3 x i64] [i64 {len(API)}, i64 {constants}, i64 {dtypes}]
declare i64 @{counter}()
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)

define internal ptr @unity_take_memory(i64 %bytes) nounwind alwaysinline {{
  %malloc = load ptr, ptr getelementptr (ptr, ptr @unity_python, i64 {api("malloc")})
  %memory = call ptr %malloc(i64 %bytes)
  ret ptr %memory
}}

define internal void @unity_give_memory(ptr %memory) nounwind alwaysinline {{
  %free = load ptr, ptr getelementptr (ptr, ptr @unity_python, i64 {api("free")})
  call void %free(ptr %memory)
  ret void
}}

define internal i1 @unity_poll(ptr %state) nounwind {{
entry:
  %now = call i64 @{counter}()
  %last = load i64, ptr %state
  %passed = sub i64 %now, %last
  %due = icmp ugt i64 %passed, {limit}
  br i1 %due, label %ask, label %calm
calm:
  ret i1 false
ask:
  store i64 %now, ptr %state
  %place = getelementptr ptr, ptr %state, i64 1
  %thread = load ptr, ptr %place
  %held = icmp eq ptr %thread, null
  br i1 %held, label %check, label %take
take:
  %restore = load ptr, ptr getelementptr (ptr, ptr @unity_python, i64 {api("PyEval_RestoreThread")})
  call void %restore(ptr %thread)
  br label %check
check:
  %signals = load ptr, ptr getelementptr (ptr, ptr @unity_python, i64 {api("PyErr_CheckSignals")})
  %raised = call i32 %signals()
  %any = icmp ne i32 %raised, 0
  br i1 %held, label %end, label %leave
leave:
  %save = load ptr, ptr getelementptr (ptr, ptr @unity_python, i64 {api("PyEval_SaveThread")})
  %new = call ptr %save()
  store ptr %new, ptr %place
  br label %end
end:
  ret i1 %any
}}"""
