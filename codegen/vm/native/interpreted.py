"""Functions that stay bytecode, called by native code: Python has the interpreter run them.

Such a function calls Python, or computes what has no known size inside; what it takes and gives is
known as well as a native function's. Its ``unity_run_K`` asks the runtime
(`unity.runtime.hosts.interpreted`) with where its arguments, its results' memory and its symbols
are. What it gave is kept until the call from Python ends: objects among the results live so long,
and where native code fails later, the bytecode that tells why takes what is kept in place of a
second call. So nobody calls it in a loop, or in a function that calls itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from unity.codegen.vm.native.layout import Layout, NotNativeError, in_loops, lay_out
from unity.codegen.vm.native.printing import PRINTED, asking_text, write_table
from unity.codegen.vm.native.text import Text
from unity.runtime import bytecode as bc
from unity.runtime.native_info import ENDED, INTERRUPTED

if TYPE_CHECKING:
    from unity.codegen.vm.native.body import Body

ASKED, CALLER, PLACE, TABLE = range(PRINTED + 1, PRINTED + 5)
"""The words of the poll state that count such calls and say where the last one stands, and where
the table of its arguments is, which is as a print's."""
WORDS = TABLE + 1
"""How many words the poll state has."""
_TOLD = ("state", "function", "outputs", "slots", "count", "caller", "place", "table")


def interface(code: bc.FunctionCode) -> Layout:
    """How native code calls a function that the interpreter runs.

    Raises:
        NotNativeError: What it takes or gives is not known well enough.
    """
    if code.aliases or code.forms or code.captured or code.captured_slots:
        raise NotNativeError("it writes over its inputs, or is a closure")
    registers, made = list(code.registers), list[bc.Instruction]()

    def fresh(spec: bc.Spec) -> bc.Tree:
        if isinstance(spec, bc.TupleSpec):
            return tuple(map(fresh, spec.fields))
        registers.append(spec)
        dst = len(registers) - 1
        if isinstance(spec, bc.TensorSpec) and spec.shape is not None and spec.dtype is not None:
            made.append(bc.AllocTensor(dst, spec.shape, spec.dtype))
        return dst

    result = fresh(code.result)
    empty = replace(code, registers=tuple(registers), code=(*made, bc.Return(result)))
    found = lay_out(empty)
    if found.late_outputs:
        raise NotNativeError("sizes of what it gives depend on data")
    found.interpreted = True
    return found


def asking(layouts: Mapping[int, Layout]) -> frozenset[int]:
    """The functions that the interpreter runs, and all that call one."""

    @cache
    def calls(index: int) -> frozenset[int]:
        found = (i for i in layouts[index].code.code if isinstance(i, bc.CallFunction))
        return frozenset(i.function for i in found)

    found = {index for index, layout in layouts.items() if layout.interpreted}
    known = -1
    while known < len(found):
        known = len(found)
        found.update(index for index in layouts if not found.isdisjoint(calls(index)))
    return frozenset(found)


def asked_often(layouts: Mapping[int, Layout]) -> dict[int, str]:
    """Functions that would have one run in a loop, or call themselves, and why that is refused."""
    found: dict[int, str] = {}
    ask = asking(layouts)
    for index in ask:
        code = layouts[index].code
        looped = in_loops(code.code)
        for at, i in enumerate(code.code):
            if isinstance(i, bc.CallFunction) and i.function in ask:
                name = layouts[i.function].code.name
                if at in looped:
                    found[index] = f"in a loop it calls {name}, which has Python called"
                elif index in _reached(i.function, layouts):
                    found[index] = "it calls itself, and has Python called"
    return found


def _reached(start: int, layouts: Mapping[int, Layout]) -> set[int]:
    """A function, and all that it calls."""
    found, left = set[int](), [start]
    while left:
        index = left.pop()
        if index not in found:
            found.add(index)
            code = layouts[index].code.code
            left += [i.function for i in code if isinstance(i, bc.CallFunction)]
    return found


def call_text() -> str:
    """The text of ``i1 unity_call(poll, words...)``, for all functions."""
    return asking_text("unity_call", "call", _TOLD)


def run_text(index: int) -> str:
    """The text of ``unity_run_<index>``, of a function that the interpreter runs."""
    t = Text()
    t.block("entry")
    count = t.let(f"add i64 {t.load('i64', '%poll', ASKED, 'i64')}, 1")
    t.store("i64", count, "%poll", ASKED)
    tables = ("poll", "outputs", "slots")
    state, *others = (t.let(f"ptrtoint ptr %{name} to i64") for name in tables)
    where = [t.load("i64", "%poll", word, "i64") for word in (CALLER, PLACE, TABLE)]
    words = ", ".join(f"i64 {word}" for word in (state, index, *others, count, *where))
    well = t.let(f"call i1 @unity_call(ptr %poll, {words})")
    t.do(f"ret i64 {t.let(f'select i1 {well}, i64 0, i64 {INTERRUPTED}')}")
    header = (
        f"define internal i64 @unity_run_{index}(ptr noalias %inputs, ptr noalias %outputs, "
        "ptr noalias %slots, ptr %arena, ptr %poll) nounwind {"
    )
    return "\n".join([header, *t.lines, "}"])


def tell_call(body: Body, at: int, call: bc.CallFunction) -> None:
    """Say which instruction calls the function that is run next, and with what."""
    table = write_table(body, at, call.args)
    for word, value in ((CALLER, str(body.index)), (PLACE, str(at)), (TABLE, table)):
        body.t.store("i64", value, "%poll", word)


def tell_end(t: Text, ended: str, tag: str) -> None:
    """Let go of what such functions gave, or keep it for the bytecode if the call failed.

    The GIL is held. Begins a new block.
    """
    asked = t.let(f"icmp ne i64 {t.load('i64', '%poll', ASKED, 'i64')}, 0")
    t.do(f"br i1 {asked}, label %{tag}.tell, label %{tag}.told")
    t.block(f"{tag}.tell")
    t.store("ptr", "null", "%poll", 1)
    state = t.let("ptrtoint ptr %poll to i64")
    words = ", ".join(f"i64 {word}" for word in (state, ENDED, *[ended] * 6))
    t.do(f"call i1 @unity_call(ptr %poll, {words})")
    t.do(f"br label %{tag}.told")
    t.block(f"{tag}.told")
