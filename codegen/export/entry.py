"""The functions that C calls, as LLVM IR: tensors checked, memory planned, the native function run.

For each function F of the program, ``i32 P_F(ptr inputs, ptr outputs)`` and ``i32 P_F_shapes(ptr
inputs, ptr dims)``, on arrays of pointers. Results other than 0 are places in a table of messages.
"""

from __future__ import annotations

from unity.codegen import dlpack
from unity.codegen.vm.native import late
from unity.codegen.vm.native.call import DEPTH
from unity.codegen.vm.native.layout import Layout, byte_count
from unity.codegen.vm.native.text import disjoint
from unity.ir.arrays.aligned import LINE
from unity.runtime import bytecode as bc

from .bind import bind_text
from .function import CFunction
from .messages import Messages
from .names import leaf_name


def entry_text(prefix: str, index: int, layout: Layout, messages: Messages) -> str:
    """The functions of C for a function of the program.

    Args:
        prefix: What their names begin with.
        index: The function's index in the program.
        layout: Its plan.
        messages: Added to.
    """
    parts = [
        bind_text(index, layout, messages),
        _shapes(prefix, index, layout, messages),
        _call(prefix, index, layout, messages),
    ]
    return "\n".join(parts)


def _planned(f: CFunction, index: int, layout: Layout) -> str:
    """The inputs bound and the outputs' dims known; how large the arena is."""
    t = f.t
    t.block("entry")
    t.do(f"%slots = alloca [{layout.slots + 1} x i64]")
    t.do(f"%data = alloca [{len(layout.inputs) + 1} x ptr]")
    t.do(f"%numbers = alloca [{len(layout.inputs) + 1} x i64]")
    t.do(f"%flat = alloca [{sum(len(o.shape or ()) for o in layout.outputs) + 1} x i64]")
    given = "ptr %inputs, ptr %slots, ptr %data, ptr %numbers"
    f.hand_on(t.let(f"call i32 @unity_c_bind_{index}({given})"))
    bytes_ = t.let(f"call i64 @unity_plan_{index}(ptr %slots, ptr %flat)")
    possible = t.let(f"icmp sge i64 {bytes_}, 0")
    f.require(possible, "a size is negative, or beyond any memory, for inputs of these sizes")
    return bytes_


def _shapes(prefix: str, index: int, layout: Layout, m: Messages) -> str:
    f = CFunction(m)
    _planned(f, index, layout)
    t, first = f.t, 0
    for k, spec in enumerate(layout.outputs):
        dims = t.load("ptr", "%dims", k, "ptr")
        for axis in range(len(spec.shape or ())):
            t.store("i64", t.load("i64", "%flat", first + axis, "i64"), dims, axis)
        first += len(spec.shape or ())
    t.do("ret i32 0")
    return f.finished(f"define i32 @{prefix}_{layout.code.name}_shapes(ptr %inputs, ptr %dims)")


def _call(prefix: str, index: int, layout: Layout, m: Messages) -> str:
    f = CFunction(m)
    bytes_ = _planned(f, index, layout)
    t, first = f.t, 0
    t.do(f"%outs = alloca [{len(layout.outputs) + 1} x ptr]")
    names, inside = layout.code.output_names, dict(layout.code.aliases)
    for k, spec in enumerate(layout.outputs):
        if k in inside:  # it is an input's own tensor, written over
            first += len(spec.shape or ())
            continue
        what = f"output {names[k]}" if k < len(names) else f"output {k}"
        tensor = t.load("ptr", "%outputs", k, "ptr")
        f.tensor(tensor, spec, what)
        shape = t.load("ptr", tensor, dlpack.SHAPE)
        for axis in range(len(spec.shape or ())):
            wanted = t.load("i64", "%flat", first + axis, "i64")
            actual = t.load("i64", shape, axis, "i64")
            same = t.let(f"icmp eq i64 {wanted}, {actual}")
            f.require(same, f"{what} axis {axis} is not of the size that the inputs give it")
        first += len(spec.shape or ())
        t.store("ptr", f.data(tensor), "%outs", k)
    _apart(f, layout)
    started = t.let("call i1 @unity_c_start()")
    f.require(started, "the system gives no leave to use the tile registers of this processor")
    arena = t.let(f"call ptr @unity_c_take(i64 {bytes_})")
    f.require(t.let(f"icmp ne ptr {arena}, null"), "there is no memory")
    run = _run(f, index, layout, arena)
    t.do(f"call void @unity_c_give(ptr {arena})")
    f.require(t.let(f"icmp eq i64 {run}, 0"), "a check inside the program failed")
    t.do("ret i32 0")
    return f.finished(f"define i32 @{prefix}_{layout.code.name}(ptr %inputs, ptr %outputs)")


def _run(f: CFunction, index: int, layout: Layout, arena: str) -> str:
    """The native function's call; its result."""
    t = f.t
    t.do(f"%poll = alloca [{late.TABLE + 1} x i64]")
    t.store("i64", "0", "%poll", DEPTH)
    if layout.late:
        t.do(f"%late = alloca [{late.words(layout)} x i64]")
        late.begin(t, layout, "%late")
    run = t.let(
        f"call i64 @unity_run_{index}(ptr %data, ptr %outs, ptr %slots, "
        f"ptr {t.at(arena, LINE)}, ptr %poll)"
    )
    if layout.late:
        late.vacate(t, layout, "%late")
    return run


def _apart(f: CFunction, layout: Layout) -> None:
    """Check that tensors that are written to share no memory with others."""
    t, code = f.t, layout.code
    places: list[tuple[str, str, int, bc.TensorSpec, bool]] = []
    for k, spec in enumerate(layout.inputs):
        if isinstance(spec, bc.TensorSpec):
            written = k in code.given_away
            name = leaf_name(code, layout.paths[k])
            places.append((f"input {name}", "%data", k, spec, written))
    inside = dict(code.aliases)
    for k, spec in enumerate(layout.outputs):
        if k not in inside:
            name = code.output_names[k] if k < len(code.output_names) else str(k)
            places.append((f"output {name}", "%outs", k, spec, True))
    for i, (what, array, k, spec, written) in enumerate(places):
        for other, its_array, its_k, its_spec, also in places[:i]:
            if not (written or also):
                continue
            a, b = t.load("ptr", array, k, "ptr"), t.load("ptr", its_array, its_k, "ptr")
            sizes = t.size(byte_count(spec)), t.size(byte_count(its_spec))
            apart = disjoint(t, a, sizes[0], b, sizes[1])
            f.require(apart, f"{what} and {other} share memory, and one of them is written to")
