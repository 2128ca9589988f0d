"""Prints in native code: Python is asked to, with the values where they lie.

The runtime's printer (`unity.runtime.bytecode.effects`) gets the function, the instruction in it,
how many prints the call has made (this one among them), and a table: for a tensor its memory and
dims, for a shape its dims, for a number itself, for an object its address; nothing for a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from unity.codegen.vm.native.layout import Layout
from unity.codegen.vm.native.prelude import api
from unity.codegen.vm.native.text import Text
from unity.ir.dtype import dtype
from unity.runtime import bytecode as bc
from unity.runtime.native_info import NOT_PRINTED

if TYPE_CHECKING:
    from unity.codegen.vm.native.body import Body

PRINTED = 4
"""The word of the poll state that counts the prints of a call from Python."""


def print_text() -> str:
    """The text of ``i1 unity_print(poll, function, at, count, table)``: whether it went well."""
    return asking_text("unity_print", "print", ("function", "at", "count", "table"))


def asking_text(name: str, callee: str, words: Sequence[str]) -> str:
    """The text of ``i1 <name>(poll, words...)``, which calls an object of the runtime's table.

    It takes the GIL if the call has let go of it. False where there is an exception.
    """
    t = Text()
    t.block("entry")
    t.do(f"%boxes = alloca [{len(words)} x ptr]")
    thread = t.load("ptr", "%poll", 1, "ptr")
    held = t.let(f"icmp eq ptr {thread}, null")
    t.do(f"br i1 {held}, label %ready, label %take")
    t.block("take")
    t.do(f"call void {_api(t, 'PyEval_RestoreThread')}(ptr {thread})")
    t.do("br label %ready")
    t.block("ready")
    box, drop, none = _api(t, "PyLong_FromLongLong"), _api(t, "Py_DecRef"), "false"
    boxes = [t.let(f"call ptr {box}(i64 %{word})") for word in words]
    for k, made in enumerate(boxes):
        t.store("ptr", made, "%boxes", k)
        none = t.let(f"or i1 {none}, {t.let(f'icmp eq ptr {made}, null')}")
    t.do(f"br i1 {none}, label %called, label %call")
    t.block("call")
    given = f"ptr {_api(t, callee)}, ptr %boxes, i64 {len(words)}, ptr null"
    called = t.let(f"call ptr {_api(t, 'PyObject_Vectorcall')}({given})")
    t.do("br label %called")
    t.block("called")
    result = t.let(f"phi ptr [ null, %ready ], [ {called}, %call ]")
    for left in (*boxes, result):
        t.do(f"call void {drop}(ptr {left})")
    good = t.let(f"icmp ne ptr {result}, null")
    t.do(f"br i1 {held}, label %end, label %leave")
    t.block("leave")
    t.store("ptr", t.let(f"call ptr {_api(t, 'PyEval_SaveThread')}()"), "%poll", 1)
    t.do("br label %end")
    t.block("end")
    t.do(f"ret i1 {good}")
    params = ", ".join(["ptr %poll", *(f"i64 %{word}" for word in words)])
    return "\n".join([f"define internal i1 @{name}({params}) nounwind {{", *t.lines, "}"])


def _api(t: Text, name: str) -> str:
    """A function or object of the runtime's table."""
    return t.load("ptr", "@unity_python", api(name), "ptr")


def declare_table(t: Text, at: int, words: int) -> None:
    """The table of a print, in the function's first block."""
    t.do(f"%table{at} = alloca [{max(words, 1)} x i64]")


def table_words(layout: Layout, values: tuple[bc.Tree, ...]) -> int:
    """How many words the table of a print has."""
    return sum(_words(layout.code, register) for register in bc.leaves(values))


def _words(code: bc.FunctionCode, register: bc.Reg) -> int:
    match code.registers[register]:
        case bc.TensorSpec(_, shape):
            return 1 + len(shape or ())
        case bc.ShapeSpec(dims):
            return len(dims or ())
        case bc.ScalarSpec():
            return 1
        case _:
            return 0 if bc.literal_of(code, register) else 1


def write_print(body: Body, at: int, values: tuple[bc.Tree, ...]) -> None:
    """The instructions of a print."""
    t, place = body.t, write_table(body, at, values)
    count = t.let(f"add i64 {t.load('i64', '%poll', PRINTED, 'i64')}, 1")
    t.store("i64", count, "%poll", PRINTED)
    given = f"ptr %poll, i64 {body.index}, i64 {at}, i64 {count}, i64 {place}"
    body.goto_unless(t.let(f"call i1 @unity_print({given})"), "interrupted", at, "printed")


def write_table(body: Body, at: int, values: tuple[bc.Tree, ...]) -> str:
    """The instructions that tell of values in an instruction's table; the table's address."""
    t, table, word = body.t, f"%table{at}", 0
    for register in bc.leaves(values):
        match body.code.registers[register]:
            case bc.TensorSpec():
                t.store("ptr", body.get(register), table, word)
                found = ["", *body.dims(register)]
            case bc.ShapeSpec(dims):
                found = [t.size(body.resolved(s)) for s in dims or ()]
            case bc.ScalarSpec(name):
                t.store(
                    "double" if dtype(name).is_float else "i64", body.get(register), table, word
                )
                found = [""]
            case _ if bc.literal_of(body.code, register):
                found = []
            case _:
                t.store("ptr", body.get(register), table, word)
                found = [""]
        for k, size in enumerate(found):
            if size:
                t.store("i64", size, table, word + k)
        word += len(found)
    return t.let(f"ptrtoint ptr {table} to i64")


def tell_unfinished(t: Text) -> None:
    """Tell that the call failed behind so many prints: they are not to be made again."""
    count = t.load("i64", "%poll", PRINTED, "i64")
    t.store("ptr", "null", "%poll", 1)  # the GIL is held
    t.do(f"call i1 @unity_print(ptr %poll, i64 {NOT_PRINTED}, i64 0, i64 {count}, i64 0)")
