"""What links native code to the runtime: names, table orders and what each function needs."""

from __future__ import annotations

from dataclasses import dataclass

API = (
    "ndarray", "PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_CheckSignals",
    "PyObject_Vectorcall", "PyArray_Empty", "Py_IncRef", "Py_DecRef", "PyTuple_New",
    "PyTuple_SetItem", "PyErr_Clear", "malloc", "free", "tuple", "int", "PyTuple_Size",
    "PyTuple_GetItem", "PyLong_AsLongLongAndOverflow", "PyLong_FromLongLong",
    "PyArray_NewFromDescr", "PyArray_SetBaseObject", "lease", "PyObject_VectorcallMethod", "False",
    "exchange", "True", "float", "PyFloat_AsDouble",
    "PyFloat_FromDouble", "print", "call",
)  # fmt: skip
"""What the entries read from the table `API_TABLE`, in order."""
OWN = frozenset({"lease", "print", "call"})
"""Those that each module has for itself."""
NOT_PRINTED = -1
"""What the printer is told for a function where a call failed behind prints."""
FAILED, INTERRUPTED = 1, 2
"""How native code ends that does not come to its end: a check failed, or there is an exception."""
ENDED = -1
"""What the interpreter is told for a function where a call from Python ends."""
API_TABLE = "unity_python"
CONSTANT_TABLE = "unity_constants"
DTYPE_TABLE = "unity_dtypes"
TABLES = (API_TABLE, CONSTANT_TABLE, DTYPE_TABLE)
"""What a native module exports besides its functions, to be filled when it is linked."""
LENGTHS = "unity_table_lengths"
"""How many entries each of `TABLES` has, as int64, in order."""
# Offsets in PyArrayObject, checked at start-up by `unity.runtime.native`.
ARRAY_DATA, ARRAY_NDIM, ARRAY_SHAPE, ARRAY_DESCR, ARRAY_FLAGS = 16, 24, 32, 56, 64
OBJECT_TYPE = 8
PLAIN_FLAGS = 0x1 | 0x100  # C-contiguous and aligned
WRITABLE_FLAGS = PLAIN_FLAGS | 0x400


@dataclass(frozen=True, slots=True)
class NativeFunction:
    """A function that has native code: its symbols.

    Attributes:
        name: The function's name in the program.
        entry: A METH_FASTCALL | METH_KEYWORDS function: tensors in, an array or a tuple out.
        release: Frees the arenas that the entry keeps.
    """

    name: str
    entry: str
    release: str


@dataclass(frozen=True, slots=True)
class NativeInfo:
    """A native module.

    Attributes:
        functions: Those that have native code.
        dtypes: What `DTYPE_TABLE` holds, in order.
        reasons: Why others have no code.
        api: What `API_TABLE` holds, in order.
    """

    functions: tuple[NativeFunction, ...]
    dtypes: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...] = ()
    api: tuple[str, ...] = API
