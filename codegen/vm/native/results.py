"""What an entry gives back: outputs allocated before the run, and made Python's values after it.

Of a tensor that is an array, whose memory the native function writes to; of a number or an object
there is a place among ``%values``. What is given is one of them, or a tuple of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from unity.codegen.vm.native import interpreted
from unity.codegen.vm.native.layout import byte_count
from unity.codegen.vm.native.values import load_value
from unity.codegen.vm.native.writer import EntryWriter
from unity.ir.dtype import HANDLE, dtype
from unity.runtime import bytecode as bc
from unity.runtime import native_info as n


@dataclass(frozen=True, slots=True)
class _Tuple:
    """A result that is a tuple: where it is, and the tuples among its fields."""

    place: str
    fields: Sequence[_Tuple | None]


def allocate_outputs(e: EntryWriter) -> None:
    """Plan, then allocate the outputs as numpy arrays."""
    t, layout = e.t, e.layout
    t.do(f"%arena_bytes = call i64 @unity_plan_{e.index}(ptr %slots, ptr %dims)")
    e.go_on_if(t.let("icmp sge i64 %arena_bytes, 0"), "slow")
    first, aliases = 0, dict(layout.code.aliases)
    places = {k: t.at("%values", i, "i64") for i, k in enumerate(sorted(layout.values))}
    for k, spec in enumerate(layout.outputs):
        rank = len(spec.shape or ())
        if k in places:
            t.store("ptr", "null", "%objects", k)
            t.store("ptr", places[k], "%outputs", k)
            continue
        if k in layout.late_outputs:
            t.store("ptr", "null", "%objects", k)
            first += rank
            continue
        if k in aliases:
            array = t.load("ptr", "%args", aliases[k], "ptr")
            t.do(f"call void {e.api('Py_IncRef')}(ptr {array})")
            t.store("ptr", array, "%objects", k)
            first += rank
            continue
        array = _new_array(e, k, first)
        e.go_on_if(t.let(f"icmp ne ptr {array}, null"), f"drop{k}")
        t.store("ptr", t.load("ptr", array, n.ARRAY_DATA), "%outputs", k)
        first += rank


def gather_late_outputs(e: EntryWriter) -> None:
    """Outputs whose sizes are known now, copied while what they lie in is still ours."""
    t, layout = e.t, e.layout
    t.do("store i64 %code, ptr %outcome")
    t.do(f"br i1 {t.let('icmp eq i64 %code, 0')}, label %gather, label %gathered")
    t.block("gather")
    first = 0
    for k, spec in enumerate(layout.outputs):
        if k in layout.late_outputs:
            for axis, size in enumerate(spec.shape or ()):
                t.store("i64", t.size(size), "%dims", first + axis)
            array = _new_array(e, k, first)
            e.go_on_if(t.let(f"icmp ne ptr {array}, null"), "ungathered")
            to = t.load("ptr", array, n.ARRAY_DATA)
            source = t.load("ptr", "%outputs", k, "ptr")
            given = f"ptr {to}, ptr {source}, i64 {t.size(byte_count(spec))}, i1 false"
            t.do(f"call void @llvm.memmove.p0.p0.i64({given})")
        first += len(spec.shape or ())
    t.do("br label %gathered")
    t.block("ungathered")
    t.do(f"call void {e.api('PyErr_Clear')}()")  # the slow way says what there's no room for
    t.do(f"store i64 {n.FAILED}, ptr %outcome")
    t.do("br label %gathered")
    t.block("gathered")


def give_results(e: EntryWriter, *, asks: bool) -> None:
    """One array or number, or a tuple of them.

    Args:
        e: The entry.
        asks: Whether it has the interpreter run functions.
    """
    t, value, count = e.t, _returned(e.layout.code), len(e.layout.outputs)
    for k in sorted(e.layout.values):
        made = _value(e, k)
        e.go_on_if(t.let(f"icmp ne ptr {made}, null"), f"drop{count}")
        t.store("ptr", made, "%objects", k)
    if asks:
        interpreted.tell_end(t, "0", "well")
    if isinstance(value, int):
        t.do(f"ret ptr {t.load('ptr', '%objects', 0, 'ptr')}")
        return
    whole = _empty(e, value)  # all are there before any takes what else has to be dropped
    _fill(e, whole, iter(range(count)))
    t.do(f"ret ptr {whole.place}")


def _new_array(e: EntryWriter, k: int, first: int) -> str:
    """An array for an output, whose dims begin at a place of ``%dims``; null without memory."""
    t, spec = e.t, e.layout.outputs[k]
    assert spec.dtype is not None
    descr = e.dtype(spec.dtype)
    t.do(f"call void {e.api('Py_IncRef')}(ptr {descr})")  # which the array takes
    rank, dims = len(spec.shape or ()), t.at("%dims", first, "i64")
    made = f"i32 {rank}, ptr {dims}, ptr {descr}, i64 {t.size(byte_count(spec))}, i64 {k}"
    array = t.let(f"call ptr @unity_new_array({made})")
    t.store("ptr", array, "%objects", k)
    return array


def _empty(e: EntryWriter, tree: tuple[bc.Tree, ...]) -> _Tuple:
    """A tuple without items, and those in it."""
    made = e.t.let(f"call ptr {e.api('PyTuple_New')}(i64 {len(tree)})")
    e.go_on_if(e.t.let(f"icmp ne ptr {made}, null"), f"drop{len(e.layout.outputs)}")
    return _Tuple(made, [_empty(e, f) if isinstance(f, tuple) else None for f in tree])


def _fill(e: EntryWriter, whole: _Tuple, outputs: Iterator[int]) -> None:
    """Give a tuple its items, which it takes."""
    t = e.t
    for k, field in enumerate(whole.fields):
        if field is None:
            item = t.load("ptr", "%objects", next(outputs), "ptr")
        else:
            _fill(e, field, outputs)
            item = field.place
        t.do(f"call i32 {e.api('PyTuple_SetItem')}(ptr {whole.place}, i64 {k}, ptr {item})")


def _value(e: EntryWriter, k: int) -> str:
    """An output that is an object or a number, as Python's; null without memory."""
    t, kind = e.t, dtype(e.layout.outputs[k].dtype or "")
    value = load_value(t, kind, t.load("ptr", "%outputs", k, "ptr"))
    if kind == HANDLE:
        t.do(f"call void {e.api('Py_IncRef')}(ptr {value})")
        return value
    if kind.is_float:
        return t.let(f"call ptr {e.api('PyFloat_FromDouble')}(double {value})")
    if kind.is_int:
        return t.let(f"call ptr {e.api('PyLong_FromLongLong')}(i64 {value})")
    true = t.let(f"icmp ne i64 {value}, 0")
    found = t.let(f"select i1 {true}, ptr {e.api('True')}, ptr {e.api('False')}")
    t.do(f"call void {e.api('Py_IncRef')}(ptr {found})")
    return found


def _returned(code: bc.FunctionCode) -> bc.Tree:
    return next(i.value for i in code.code if isinstance(i, bc.Return))
