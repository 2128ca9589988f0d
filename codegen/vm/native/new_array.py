"""``unity_new_array``: the array that a result of an entry is written to."""

from __future__ import annotations

from unity.codegen.vm.native.prelude import api
from unity.runtime import native_info as n
from unity.runtime.arrays.recycle import LEAST


def new_array_text() -> str:
    """The text of ``ptr unity_new_array(rank, dims, dtype, bytes, nth)``, null with an exception.

    A large one lies in memory that the runtime's ``lease(bytes, nth)`` gives, which an object holds
    that becomes the array's base. It takes a reference to the dtype.
    """

    def of(name: str, known_as: str) -> str:
        place = f"getelementptr (ptr, ptr @unity_python, i64 {api(name)})"
        return f"  %{known_as} = load ptr, ptr {place}"

    return f"""\
define internal ptr @unity_new_array(i32 %rank, ptr %dims, ptr %dtype, i64 %bytes, i64 %nth)
    nounwind {{
entry:
  %args = alloca [2 x ptr]
{of("Py_DecRef", "drop")}
  %large = icmp uge i64 %bytes, {LEAST}
  br i1 %large, label %lease, label %plain
plain:
{of("PyArray_Empty", "empty")}
  %small = call ptr %empty(i32 %rank, ptr %dims, ptr %dtype, i32 0)
  ret ptr %small
lease:
{of("PyLong_FromLongLong", "box")}
  %first = call ptr %box(i64 %bytes)
  %second = call ptr %box(i64 %nth)
  store ptr %first, ptr %args
  %place = getelementptr ptr, ptr %args, i64 1
  store ptr %second, ptr %place
{of("PyObject_Vectorcall", "vectorcall")}
{of("lease", "method")}
  %memory = call ptr %vectorcall(ptr %method, ptr %args, i64 2, ptr null)
  call void %drop(ptr %first)
  call void %drop(ptr %second)
  %leased = icmp ne ptr %memory, null
  br i1 %leased, label %wrap, label %none
none:
  call void %drop(ptr %dtype)
  ret ptr null
wrap:
  %where = getelementptr i8, ptr %memory, i64 {n.ARRAY_DATA}
  %data = load ptr, ptr %where
{of("PyArray_NewFromDescr", "new")}
{of("ndarray", "type")}
  %array = call ptr %new(ptr %type, ptr %dtype, i32 %rank, ptr %dims, ptr null, ptr %data, \
i32 {n.WRITABLE_FLAGS}, ptr null)
  %made = icmp ne ptr %array, null
  br i1 %made, label %hold, label %lost
lost:
  call void %drop(ptr %memory)
  ret ptr null
hold:
{of("PyArray_SetBaseObject", "keep")}
  %kept = call i32 %keep(ptr %array, ptr %memory)
  %held = icmp eq i32 %kept, 0
  br i1 %held, label %done, label %broken
broken:
  call void %drop(ptr %array)
  ret ptr null
done:
  ret ptr %array
}}"""
