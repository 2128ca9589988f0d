"""Bytecode to native code: one LLVM function for each function of the program that allows it.

``i64 unity_run_K(ptr inputs, ptr outputs, ptr slots, ptr arena, ptr poll)`` runs function K: the
tensors' data pointers are in the tables `inputs` and `outputs`, the symbols' values in `slots`;
`arena` is as large as ``unity_plan_K(slots, dims)`` says, which also fills in the outputs' dims, or
gives -1 if a tensor would have a negative extent, or more bytes than there can be (`overflow`).
``unity_run_K`` returns 0, or 1 when a check or a kernel failed (the bytecode then tells which), or
2 when a signal came in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from unity.codegen.vm.native import interpreted
from unity.codegen.vm.native.body import run_text
from unity.codegen.vm.native.call import require_callable
from unity.codegen.vm.native.entry import entry_text
from unity.codegen.vm.native.exchange import exchange_text
from unity.codegen.vm.native.late import late_text
from unity.codegen.vm.native.layout import Layout, NotNativeError, lay_out
from unity.codegen.vm.native.new_array import new_array_text
from unity.codegen.vm.native.overflow import fits_text, most_bits, planned_sizes, require_possible
from unity.codegen.vm.native.prelude import prelude_text
from unity.codegen.vm.native.printing import print_text
from unity.codegen.vm.native.text import Text
from unity.ir.arrays.aligned import LINE
from unity.runtime import bytecode as bc
from unity.runtime.bytecode import CallFunction, CallHost, FunctionCode, LoadConst, Program
from unity.runtime.bytecode.sizes import Size, Slot, slots_of
from unity.runtime.native_info import NativeFunction, NativeInfo


@dataclass(frozen=True, slots=True)
class NativeText:
    """A native module's LLVM IR, and what the runtime has to know of it."""

    text: str
    info: NativeInfo


def native_text(program: Program, triple: str) -> NativeText:
    """The native module of a program.

    Args:
        program: The bytecode.
        triple: LLVM's name of the machine, for what is not portable (the cycle counter).
    """
    plans = native_layouts(program)
    layouts = plans.callable
    ask = interpreted.asking(layouts)
    functions: list[NativeFunction] = []
    dtypes: list[str] = []
    parts: list[str] = []
    kernels: set[str] = set()
    prints = any(isinstance(i, bc.Print) for layout in layouts.values() for i in layout.code.code)
    for index, layout in plans.asked.items():
        parts += [plan_text(index, layout), interpreted.run_text(index)]
    for index, layout in plans.native.items():
        code = layout.code
        parts.append(plan_text(index, layout))
        parts.append(run_text(index, layout, program, kernels, layouts))
        constants = uses_constants(code)
        parts.append(
            entry_text(
                index,
                layout,
                dtypes,
                uses_constants=constants,
                prints=prints,
                asks=index in ask,
            )
        )
        entry, release = f"unity_entry_{index}", f"unity_release_{index}"
        functions.append(NativeFunction(code.name, entry, release))
    declared = kernel_declarations(program, kernels)
    head = [prelude_text(len(program.constants), len(dtypes), triple), new_array_text()]
    head += [exchange_text(dtypes)] if plans.native else []
    head += [late_text()] if any(layout.late for layout in layouts.values()) else []
    head += [print_text()] if prints else []
    head += [interpreted.call_text()] if plans.asked else []
    reasons = tuple((program.functions[i].name, why) for i, why in sorted(plans.why_not.items()))
    info = NativeInfo(tuple(functions), tuple(dtypes), reasons)
    return NativeText("\n".join([*head, *declared, *parts]), info)


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of a program's functions, by index.

    Attributes:
        native: Of those that are native.
        asked: Of those that the interpreter runs where native code calls them.
        why_not: Why a function is not native.
    """

    native: Mapping[int, Layout]
    asked: Mapping[int, Layout]
    why_not: Mapping[int, str]

    @property
    def callable(self) -> Mapping[int, Layout]:
        """The plans of all that native code may call."""
        return {**self.native, **self.asked}


def native_layouts(program: Program, *, alone: bool = False) -> Plans:
    """The plans of the functions that can be native, and why the others can't.

    Whether one can depends on those it calls: all are taken for native until one turns out not.

    Args:
        program: The bytecode.
        alone: Whether there is no Python, which could have the interpreter run some of them.
    """
    why_not = {
        k: why for k, code in enumerate(program.functions) if (why := host_call(code, program))
    }
    settled = False
    while True:
        layouts: dict[int, Layout] = {}
        known = len(why_not)
        asked = {} if alone else _interfaces(program, why_not)
        for index, code in enumerate(program.functions):
            if index not in why_not:
                try:
                    check = partial(
                        require_callable,
                        code,
                        program=program,
                        why_not=why_not,
                        asked=asked,
                        settled=settled,
                    )
                    layouts[index] = lay_out(code, check)
                    require_possible(layouts[index])
                except NotNativeError as why:
                    layouts.pop(index, None)
                    why_not[index] = str(why)
        why_not.update(_calls_of_unknown_size(layouts))
        if len(why_not) == known:
            why_not.update(interpreted.asked_often({**layouts, **asked}))
        settled, was_settled = len(why_not) == known, settled
        if settled and was_settled:
            every = [i for layout in layouts.values() for i in layout.code.code]
            called = {i.function for i in every if isinstance(i, CallFunction)}
            return Plans(layouts, {k: v for k, v in asked.items() if k in called}, why_not)


def host_call(code: FunctionCode, program: Program) -> str:
    """That a function calls one of the host; nothing if it does not."""
    hosts = (program.hosts[i.host] for i in code.code if isinstance(i, CallHost))
    return next((f"it calls Python ({name})" for name in hosts), "")


def _interfaces(program: Program, indices: Iterable[int]) -> dict[int, Layout]:
    """How native code calls functions that are not, those of them that it can call."""
    found: dict[int, Layout] = {}
    for index in indices:
        try:
            layout = interpreted.interface(program.functions[index])
            require_possible(layout)
            found[index] = layout
        except NotNativeError:
            pass
    return found


def _calls_of_unknown_size(layouts: Mapping[int, Layout]) -> dict[int, str]:
    """Functions that call one that reads how large its results are, and why that is not native."""
    found: dict[int, str] = {}
    for index, layout in layouts.items():
        for i in layout.code.code:
            if isinstance(i, CallFunction) and i.function in layouts:
                callee = layouts[i.function]
                if callee.late_outputs:
                    found[index] = f"sizes of what {callee.code.name} gives depend on data"
    return found


def uses_constants(code: FunctionCode) -> bool:
    """Whether a function reads constants of the program."""
    return any(isinstance(i, LoadConst) for i in code.code)


def kernel_declarations(program: Program, kernels: Iterable[str]) -> list[str]:
    """The kernels that a native module calls, as it declares them."""
    return [f"declare i32 @{k}({_signature(program, k)})" for k in sorted(kernels)]


def _signature(program: Program, name: str) -> str:
    kernel = next(k for k in program.kernels if k.function == name)
    return ", ".join(["ptr"] * kernel.buffers + ["i64"] * kernel.sizes)


def plan_text(index: int, layout: Layout) -> str:
    """Writes the places' offsets and the outputs' dims; gives the arena's bytes."""
    t = Text()
    t.block("entry")
    sizes = planned_sizes(layout)
    symbols = sorted({i for s in sizes for i in slots_of(s)})
    if symbols:
        every = "0"
        for i in symbols:
            every = t.let(f"or i64 {every}, {t.size(Slot(i))}")
        small = t.let(f"icmp ult i64 {every}, {1 << most_bits(sizes)}")
        t.do(f"br i1 {small}, label %plan, label %large")
        t.block("large")
        fits = t.let(f"call i1 @unity_fits_{index}(ptr %slots)")
        t.do(f"br i1 {fits}, label %plan, label %never")
        t.block("never")
        t.do("ret i64 -1")
        t.block("plan")
    signs = "0"
    for size in layout.lengths:
        signs = t.let(f"or i64 {signs}, {t.size(size)}")
    total = "0"
    for place, size in layout.places.items():
        t.store("i64", total, "%slots", layout.offset_slot(place))
        up = t.let(f"add i64 {t.size(size)}, {LINE - 1}")
        total = t.let(f"add i64 {total}, {t.let(f'and i64 {up}, {-LINE}')}")
    for k, size in enumerate(_dims(layout)):
        if not layout.is_late(size):
            t.store("i64", t.size(size), "%dims", k)
    if layout.lengths:
        negative = t.let(f"icmp slt i64 {signs}, 0")
        total = t.let(f"select i1 {negative}, i64 -1, i64 {total}")
    t.do(f"ret i64 {total}")
    header = f"define internal i64 @unity_plan_{index}(ptr noalias %slots, ptr noalias %dims)"
    plan = "\n".join([f"{header} nounwind {{", *t.lines, "}"])
    return "\n".join([fits_text(index, sizes), plan]) if symbols else plan


def _dims(layout: Layout) -> list[Size]:
    return [s for spec in layout.outputs for s in spec.shape or ()]
