"""Native code made callable: its tables filled, each entry wrapped as a builtin function.

The entries read numpy's array objects directly. Whether the offsets they use are right for this
Python and numpy is tried once; where they are not, `supported` is false and all runs as bytecode.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol, cast

import numpy as np

from unity.errors import UnityError
from unity.ir.dtype import Array, dtype
from unity.runtime import native_info as n
from unity.runtime.arrays.exchange import TABLE
from unity.runtime.arrays.recycle import Recycler
from unity.runtime.bytecode.effects import Printer
from unity.runtime.hosts.interpreted import Interpreted
from unity.runtime.vm import VM

METH_FASTCALL, METH_KEYWORDS = 0x80, 0x02
PYARRAY = {"PyArray_NewFromDescr": 94, "PyArray_Empty": 184, "PyArray_SetBaseObject": 282}
"""Indices in numpy's C API table, part of numpy's ABI."""


class Linked(Protocol):
    """Linked object code: addresses by symbol, alive as long as this is."""

    def __getitem__(self, symbol: str) -> int: ...


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_definitions: list[_MethodDef] = []
"""Read when a builtin is deallocated, whenever that is: never freed."""


class NativeCode:
    """The native functions of a linked module.

    Args:
        library: The linked object code, kept alive by this.
        info: What it holds.
        constants: The program's constants, kept alive by this.
        vm: Runs the program it was made of, for functions that are not native.
    """

    __slots__ = ("__weakref__", "_call", "_constants", "_lease", "_library", "_printer", "info")

    def __init__(
        self, library: Linked, info: n.NativeInfo, constants: Sequence[Array], vm: VM
    ) -> None:
        self.info = info
        self._library = library
        self._constants = [np.ascontiguousarray(c).reshape(c.shape) for c in constants]
        # A finalizer, not __del__: it keeps the library alive until it has run, even when both
        # are part of one garbage cycle.
        releases = [f.release for f in info.functions]
        weakref.finalize(self, _free_arenas, library, releases).atexit = False
        self._lease = Recycler().lease
        self._printer, self._call = Printer(vm.program), Interpreted(vm)
        if info.functions:
            own = {"lease": id(self._lease), "print": id(self._printer), "call": id(self._call)}
            assert own.keys() == n.OWN
            known = {**api_addresses(), **own}
            entries = (
                [known[name] for name in info.api],
                [c.ctypes.data for c in self._constants],
                [id(dtype(name).numpy) for name in info.dtypes],
            )
            lengths = (ctypes.c_int64 * len(n.TABLES)).from_address(library[n.LENGTHS])
            for table, length, addresses in zip(n.TABLES, lengths, entries, strict=True):
                if len(addresses) != length:
                    raise UnityError(
                        f"its native code has a table {table} of {length}, not {len(addresses)}"
                    )
                _fill(library[table], addresses)

    def builtin(self, name: str, slow: Callable[..., object]) -> Callable[..., object] | None:
        """The entry of a function, or None if it has no native code.

        Args:
            name: The function.
            slow: Called with the same arguments when the entry can't go on. Must keep this alive.
        """
        found = next((f for f in self.info.functions if f.name == name), None)
        if found is None:
            return None
        definition = _MethodDef(
            name.encode(), self._library[found.entry], METH_FASTCALL | METH_KEYWORDS, b"compiled"
        )
        _definitions.append(definition)
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype, make.argtypes = (
            ctypes.py_object,
            [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p],
        )
        return cast("Callable[..., object]", make(ctypes.addressof(definition), slow, None))


def _free_arenas(library: Linked, symbols: Sequence[str]) -> None:
    """Free what the entries keep for reuse; then the library may go."""
    for symbol in symbols:
        ctypes.PYFUNCTYPE(None)(library[symbol])()


def _fill(table: int, addresses: Sequence[int]) -> None:
    entries = (ctypes.c_void_p * len(addresses)).from_address(table)
    for i, address in enumerate(addresses):
        entries[i] = address


@lru_cache(maxsize=1)
def api_addresses() -> dict[str, int]:
    """Where the functions and types that entries use lie."""
    c = ctypes.CDLL(None)
    found = {"ndarray": id(np.ndarray), "tuple": id(tuple), "int": id(int), "False": id(False)}
    found |= {"True": id(True), "float": id(float)}
    found["exchange"] = ctypes.addressof(TABLE)
    found.update({name: _numpy_api(index) for name, index in PYARRAY.items()})
    for name in n.API:
        if name not in found and name not in n.OWN:
            source = c if name in ("malloc", "free") else ctypes.pythonapi
            found[name] = cast(int, ctypes.cast(getattr(source, name), ctypes.c_void_p).value)
    return found


def _numpy_api(index: int) -> int:
    umath: object = importlib.import_module("numpy._core._multiarray_umath")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule: object = vars(umath)["_ARRAY_API"]
    table = cast(int, get(capsule, None))
    return cast(
        int, ctypes.c_void_p.from_address(table + index * ctypes.sizeof(ctypes.c_void_p)).value
    )


@lru_cache(maxsize=1)
def supported() -> bool:
    """Whether entries can read this Python's and numpy's objects."""
    if sys.implementation.name != "cpython" or sys.maxsize < 1 << 32 or not _has_gil():
        return False
    try:
        return _layout_is_known() and _empty_works() and _memory_is_wrapped()
    except (AttributeError, ImportError, OSError, ValueError):
        return False


def _has_gil() -> bool:
    enabled: object = getattr(sys, "_is_gil_enabled", None)
    return bool(enabled()) if callable(enabled) else True


def _layout_is_known() -> bool:
    probe = np.zeros((2, 3), np.float32)
    shape = _word(probe, n.ARRAY_SHAPE, ctypes.c_void_p)
    return (
        _word(probe, n.OBJECT_TYPE, ctypes.c_void_p) == id(np.ndarray)
        and _word(probe, n.ARRAY_DATA, ctypes.c_void_p) == probe.ctypes.data
        and _word(probe, n.ARRAY_NDIM, ctypes.c_int) == 2
        and list((ctypes.c_int64 * 2).from_address(shape)) == [2, 3]
        and _word(probe, n.ARRAY_DESCR, ctypes.c_void_p) == id(probe.dtype)
        and _word(probe, n.ARRAY_FLAGS, ctypes.c_int) & n.WRITABLE_FLAGS == n.WRITABLE_FLAGS
        and _word(np.broadcast_to(probe, (2, 3)), n.ARRAY_FLAGS, ctypes.c_int) & 0x401 == 0x1
        and not _word(probe.T, n.ARRAY_FLAGS, ctypes.c_int) & 0x1
    )


def _word(of: object, offset: int, kind: type[ctypes.c_void_p | ctypes.c_int]) -> int:
    return int(kind.from_address(id(of) + offset).value or 0)


def _empty_works() -> bool:
    empty = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_int, ctypes.c_void_p, ctypes.py_object, ctypes.c_int
    )(_numpy_api(PYARRAY["PyArray_Empty"]))
    kind, dims = np.dtype(np.float64), (ctypes.c_int64 * 2)(3, 5)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kind))  # the call takes a reference
    made: object = empty(2, ctypes.addressof(dims), kind, 0)
    return isinstance(made, np.ndarray) and made.shape == (3, 5) and made.dtype == kind


def _memory_is_wrapped() -> bool:
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        ctypes.py_object,
        ctypes.py_object,
        ctypes.c_int,
        *[ctypes.c_void_p] * 3,
        ctypes.c_int,
        ctypes.c_void_p,
    )(_numpy_api(PYARRAY["PyArray_NewFromDescr"]))
    keep = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.py_object)(
        _numpy_api(PYARRAY["PyArray_SetBaseObject"])
    )
    memory, kind, dims = Recycler().lease(120, 0), np.dtype(np.float64), (ctypes.c_int64 * 2)(3, 5)
    for taken in (kind, memory):  # the calls take a reference each
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(taken))
    place = memory.ctypes.data
    made: object = make(
        np.ndarray, kind, 2, ctypes.addressof(dims), None, place, n.WRITABLE_FLAGS, None
    )
    return (
        isinstance(made, np.ndarray)
        and keep(made, memory) == 0
        and (made.shape, made.dtype, made.ctypes.data) == ((3, 5), kind, place)
        and (made.base is memory or made.base is memory.base)
    )
