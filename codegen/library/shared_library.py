"""Shared libraries that kernels of programs being compiled call.

`unity.runtime.linking.foreign_library` finds and loads them; what is added here is the code that
keeps one to the calling thread, which has to be compiled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from unity.codegen.llvm.machine import compile_text
from unity.machine.target import Target
from unity.runtime.host import host_triple
from unity.runtime.linking.foreign_library import ForeignLibrary


@dataclass(slots=True)
class SharedLibrary(ForeignLibrary):
    """A shared library; ``SharedLibrary(name, files).register()`` lets kernels call it."""

    def serial_object(self) -> bytes:
        """The object code of ``serial_begin`` and ``serial_end``."""
        return b"" if self.threads is None else _serial_object()


@lru_cache(maxsize=1)
def _serial_object() -> bytes:
    return compile_text(_SERIAL, Target("cpu", host_triple(), "generic", ()), "short").object


_SERIAL = """
; The first to begin notes how many threads the library had and takes them away; the last to end
; gives them back. A lock makes both whole; it is held for some loads and stores.
@lock = internal global i32 0
@depth = internal global i64 0
@saved = internal global i32 0
declare i32 @unity_get()
declare void @unity_set(i32)

define internal void @acquire() nounwind {
entry:
  br label %try
try:
  %old = atomicrmw xchg ptr @lock, i32 1 acquire
  %free = icmp eq i32 %old, 0
  br i1 %free, label %done, label %try
done:
  ret void
}

define void @unity_serial_begin() nounwind {
entry:
  call void @acquire()
  %depth = load i64, ptr @depth
  %deeper = add i64 %depth, 1
  store i64 %deeper, ptr @depth
  %first = icmp eq i64 %depth, 0
  br i1 %first, label %take, label %done
take:
  %count = call i32 @unity_get()
  store i32 %count, ptr @saved
  %many = icmp ne i32 %count, 1
  br i1 %many, label %one, label %done
one:
  call void @unity_set(i32 1)
  br label %done
done:
  store atomic i32 0, ptr @lock release, align 4
  ret void
}

define void @unity_serial_end() nounwind {
entry:
  call void @acquire()
  %depth = load i64, ptr @depth
  %less = sub i64 %depth, 1
  store i64 %less, ptr @depth
  %last = icmp eq i64 %less, 0
  br i1 %last, label %give, label %done
give:
  %count = load i32, ptr @saved
  %many = icmp ne i32 %count, 1
  br i1 %many, label %back, label %done
back:
  call void @unity_set(i32 %count)
  br label %done
done:
  store atomic i32 0, ptr @lock release, align 4
  ret void
}
"""
