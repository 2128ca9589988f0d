"""Shared libraries: where their files may lie, how their symbols are written, how many threads.

A library is loaded when something first needs it. One that runs threads of its own can be kept to
the calling thread (`ThreadControl`): its work is then shared out by our pool, like all other work.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from unity.codegen.llvm import host_target
from unity.codegen.llvm.machine import compile_text
from unity.errors import UnityError
from unity.runtime import foreign
from unity.runtime.link import Library, link

SERIAL_BEGIN, SERIAL_END = "serial_begin", "serial_end"
"""Functions that every library with a `ThreadControl` has besides its own."""


@dataclass(frozen=True, slots=True)
class ThreadControl:
    """How a library is told its number of threads: two functions of its own.

    Attributes:
        get: ``int get()``.
        set: ``void set(int)``.
    """

    get: str
    set: str


@dataclass(slots=True)
class SharedLibrary:
    """A shared library, registered with `register`.

    Attributes:
        name: What symbols begin with: ``name.function``.
        files: Paths or names where it may be found, best first; called once, when it is needed.
        forms: How a function's symbol may be written, ``scipy_{}64_`` for instance.
        threads: How its threads are controlled; None if it has none.
        hint: How to get it, for the error.
    """

    name: str
    files: Callable[[], Iterable[str | Path]]
    forms: tuple[str, ...] = ("{}",)
    threads: ThreadControl | None = None
    hint: str = "install it, or give the path of its file"
    _handle: ctypes.CDLL | None = field(default=None, repr=False)
    _serial: Library | None = field(default=None, repr=False)

    def register(self) -> SharedLibrary:
        """Let kernels call it."""
        foreign.provide(self.name, self.address)
        return self

    def missing(self) -> str | None:
        """Why it can't be used; None if it can."""
        try:
            self.open()
        except UnityError as error:
            return error.message
        return None

    def open(self) -> ctypes.CDLL:
        """The library, loaded on the first call.

        Raises:
            UnityError: No file was found, or none could be loaded.
        """
        if self._handle is None:
            reasons: list[str] = []
            for path in self.files():
                try:
                    self._handle = ctypes.CDLL(str(path))
                except OSError as error:
                    reasons.append(f"{path}: {error}")
                else:
                    return self._handle
            tried = "; ".join(reasons) or "no file was found"
            raise UnityError(f"the library {self.name!r} can't be loaded: {tried}", hint=self.hint)
        return self._handle

    def address(self, function: str) -> int:
        """Where a function lies.

        Raises:
            UnityError: The library can't be loaded, or has no such function.
        """
        if self.threads is not None and function in (SERIAL_BEGIN, SERIAL_END):
            return self._serial_code(self.threads)[f"unity_{function}"]
        handle = self.open()
        for form in self.forms:
            symbol = form.format(function)
            if hasattr(handle, symbol):
                found = ctypes.cast(getattr(handle, symbol), ctypes.c_void_p).value
                assert found is not None
                return found
        written = ", ".join(form.format(function) for form in self.forms)
        raise UnityError(
            f"the library {self.name!r} ({handle._name}) has no function {function!r}",
            hint=f"looked for {written}",
        )

    def _serial_code(self, threads: ThreadControl) -> Library:
        if self._serial is None:
            imports = {
                "unity_get": self.address(threads.get),
                "unity_set": self.address(threads.set),
            }
            names = [f"unity_{SERIAL_BEGIN}", f"unity_{SERIAL_END}"]
            self._serial = link([_serial_object()], names, imports)
        return self._serial


@lru_cache(maxsize=1)
def _serial_object() -> bytes:
    return compile_text(_SERIAL, host_target(), "short").object


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
