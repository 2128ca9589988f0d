"""A call of another function of the program, native code to native code.

The caller checks what a Python caller's arguments are checked for (sizes, declared facts) and binds
the callee's symbols; results are computed in the caller's memory; the callee's arena is allocated
for the call. Whatever does not fit fails, and the bytecode then says what is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from unity.codegen.vm.native import interpreted, late
from unity.codegen.vm.native.layout import Layout, NotNativeError, literals, require_told
from unity.codegen.vm.native.text import Text
from unity.codegen.vm.native.values import load_value
from unity.ir.arrays.aligned import LINE
from unity.ir.dtype import dtype
from unity.runtime import bytecode as bc
from unity.runtime.bytecode.sizes import Size, SizeOp, Slot, combine, definitions

if TYPE_CHECKING:
    from unity.codegen.vm.native.body import Body

STACK_BYTES = 1 << 18
"""What the frames of nested calls may take: threads have 512 KiB at least where we run."""
_FRAME = 256
"""Bytes of a frame besides its tables: what the code generator spills."""
DEPTH = 2
"""The word of the poll state that counts the bytes of frames."""


def declare_frame(t: Text, at: int, callee: Layout) -> None:
    """The tables that a call hands over; in the function's first block, so that loops share them.

    Args:
        t: The caller.
        at: The call's index in its code.
        callee: What it calls.
    """
    dims = sum(len(o.shape or ()) for o in callee.outputs)
    t.do(f"%c{at}.slots = alloca [{callee.slots + 1} x i64]")
    t.do(f"%c{at}.inputs = alloca [{len(callee.inputs) + 1} x ptr]")
    t.do(f"%c{at}.scalars = alloca [{len(callee.inputs) + 1} x i64]")
    t.do(f"%c{at}.outputs = alloca [{len(callee.outputs) + 1} x ptr]")
    t.do(f"%c{at}.values = alloca [{len(callee.outputs) + 1} x i64]")
    t.do(f"%c{at}.dims = alloca [{dims + 1} x i64]")
    t.do(f"%c{at}.late = alloca [{late.words(callee) + 1} x i64]")


def frame_bytes(layout: Layout, layouts: Mapping[int, Layout]) -> int:
    """About what a call of a function takes of the stack."""
    words = len(layout.code.registers)
    for i in layout.code.code:
        if isinstance(i, bc.CallFunction):
            callee = layouts[i.function]
            words += callee.slots + 2 * len(callee.inputs) + late.words(callee) + 5
            words += sum(2 + len(o.shape or ()) for o in callee.outputs)
    return _FRAME + 8 * words


def write_call(body: Body, at: int, call: bc.CallFunction) -> None:
    """The instructions of a call."""
    t, callee = body.t, body.layouts[call.function]
    _bind(body, at, call, callee)
    results = tuple(bc.leaves(call.dst))
    for k, register in enumerate(results):
        if k in callee.values:
            t.store("ptr", t.at(f"%c{at}.values", k, "i64"), f"%c{at}.outputs", k)
            continue
        memory = body.storage(at, register)
        t.store("ptr", memory, f"%c{at}.outputs", k)
        body.set(register, memory)
    used = t.load("i64", "%poll", DEPTH, "i64")
    deeper = t.let(f"add i64 {used}, {frame_bytes(callee, body.layouts)}")
    body.goto_unless(t.let(f"icmp ule i64 {deeper}, {STACK_BYTES}"), "failed", at, "fits")
    arena, raw = _arena(body, at, call.function)
    t.store("i64", deeper, "%poll", DEPTH)
    if callee.interpreted:
        interpreted.tell_call(body, at, call)
    if callee.late:
        late.begin(t, callee, f"%c{at}.late")
    code = t.let(
        f"call i64 @unity_run_{call.function}(ptr %c{at}.inputs, ptr %c{at}.outputs, "
        f"ptr %c{at}.slots, ptr {arena}, ptr %poll)"
    )
    t.store("i64", used, "%poll", DEPTH)
    if callee.late:
        late.vacate(t, callee, f"%c{at}.late")
    t.do(f"call void @unity_give_memory(ptr {raw})")
    done = t.let(f"icmp eq i64 {code}, 0")
    t.do(f"br i1 {done}, label %n{at}.done, label %n{at}.left")
    t.block(f"n{at}.left")
    t.do(f"ret i64 {code}")
    t.block(f"n{at}.done")
    for k in sorted(callee.values):
        kind = dtype(callee.outputs[k].dtype or "")
        body.set(results[k], load_value(t, kind, t.at(f"%c{at}.values", k, "i64")))


def _bind(body: Body, at: int, call: bc.CallFunction, callee: Layout) -> None:
    """Hand over the arguments, bind the callee's symbols and check what else is said of sizes."""
    t = body.t
    bound: dict[int, Size] = {}
    pairs: list[tuple[Size, Size]] = []
    arguments = (
        leaf
        for param, argument in zip(callee.code.params, call.args, strict=True)
        for leaf in _leaves(param.spec, argument)
    )
    for k, (argument, wanted) in enumerate(zip(arguments, callee.inputs, strict=True)):
        if isinstance(argument, tuple) or (
            callee.interpreted and isinstance(wanted, bc.ObjectSpec)
        ):
            continue  # the interpreter finds it in the caller's table
        match body.code.registers[argument], wanted:
            case bc.TensorSpec(_, given), bc.TensorSpec(_, shape):
                t.store("ptr", body.get(argument), f"%c{at}.inputs", k)
                pairs += zip(shape or (), given or (), strict=True)
            case bc.ObjectSpec(), bc.ObjectSpec():
                t.store("ptr", body.get(argument), f"%c{at}.inputs", k)
            case bc.ShapeSpec(given), bc.ShapeSpec(shape):
                pairs += zip(shape or (), given or (), strict=True)
            case bc.ScalarSpec(name, known), bc.ScalarSpec(_, expected):
                kind = "double" if dtype(name).is_float else "i64"
                t.store(kind, body.get(argument), f"%c{at}.scalars", k)
                t.store("ptr", t.at(f"%c{at}.scalars", k, "i64"), f"%c{at}.inputs", k)
                pairs += [(expected, known)] if expected is not None and known is not None else []
            case _:
                raise AssertionError("require_callable let it pass")
    for told in definitions([size for size, _ in pairs], known=()):
        slope, rest = (_in_caller(size, bound) for size in (told.slope, told.rest))
        here = replace(told, slope=slope, rest=rest)
        actual = pairs[told.place][1]
        value = body.value_of(at, here, t.size(actual))
        bound[told.slot] = here.value(actual)
        t.store("i64", value, f"%c{at}.slots", told.slot)
        body.facts(at, callee.code.symbols[told.slot], value, f"slot{told.slot}")
    for n, (size, actual) in enumerate(pairs):
        a, b = t.size(_in_caller(size, bound)), t.size(actual)
        if a != b:
            body.goto_unless(t.let(f"icmp eq i64 {a}, {b}"), "failed", at, f"size{n}")


def _leaves(wanted: bc.Spec, argument: bc.Tree) -> Iterator[bc.Tree]:
    """What of an argument each leaf of what is wanted is; for an object maybe a tuple."""
    if isinstance(wanted, bc.TupleSpec) and isinstance(argument, tuple):
        for field, part in zip(wanted.fields, argument, strict=True):
            yield from _leaves(field, part)
    else:
        yield argument


def _arena(body: Body, at: int, function: int) -> tuple[str, str]:
    """The callee's arena, aligned, and what is to be freed."""
    t = body.t
    needed = t.let(f"call i64 @unity_plan_{function}(ptr %c{at}.slots, ptr %c{at}.dims)")
    body.goto_unless(t.let(f"icmp sge i64 {needed}, 0"), "failed", at, "planned")
    raw = t.let(f"call ptr @unity_take_memory(i64 {t.let(f'add i64 {needed}, {LINE}')})")
    body.goto_unless(t.let(f"icmp ne ptr {raw}, null"), "failed", at, "memory")
    end = t.let(f"ptrtoint ptr {t.at(raw, LINE - 1)} to i64")
    return t.let(f"inttoptr i64 {t.let(f'and i64 {end}, {-LINE}')} to ptr"), raw


def _in_caller(size: Size, bound: Mapping[int, Size]) -> Size:
    """A size of the callee in the caller's symbols."""
    match size:
        case int():
            return size
        case Slot(index):
            return bound[index]
        case SizeOp(op, a, b):
            return combine(op, _in_caller(a, bound), _in_caller(b, bound))
        case _:
            assert_never(size)


def _fits(wanted: bc.Spec, argument: bc.Tree, code: bc.FunctionCode, *, whole: bool) -> bool:
    """Whether enough is known of an argument to be handed over by native code.

    Args:
        wanted: What the parameter is.
        argument: The argument.
        code: The caller.
        whole: Whether anything may be an object, as where the interpreter runs the callee.
    """
    if whole and isinstance(wanted, bc.ObjectSpec):
        return True
    if isinstance(argument, tuple):
        fields = wanted.fields if isinstance(wanted, bc.TupleSpec) else ()
        pairs = zip(fields, argument, strict=False)
        return len(fields) == len(argument) and all(
            _fits(w, a, code, whole=whole) for w, a in pairs
        )
    match wanted, code.registers[argument]:
        case bc.TensorSpec(name, tuple(shape)), bc.TensorSpec(found, tuple(dims)):
            return name == found and len(shape) == len(dims)
        case bc.ShapeSpec(tuple(shape)), bc.ShapeSpec(tuple(dims)):
            return len(shape) == len(dims)
        case bc.ScalarSpec(name, expected), bc.ScalarSpec(found, known):
            return name == found and (expected is None or known is not None)
        case bc.ObjectSpec(), bc.ObjectSpec():
            return True
        case _:
            return False


def require_callable(
    code: bc.FunctionCode,
    call: bc.CallFunction,
    program: bc.Program,
    why_not: Mapping[int, str],
    asked: Collection[int],
    *,
    settled: bool,
) -> None:
    """Refuse a call that can't be native.

    Args:
        code: The caller.
        call: A call in it.
        program: Both are of it.
        why_not: Functions known not to be native, each with the reason.
        asked: Those of them that the interpreter runs for native code.
        settled: Whether it is known which functions are not native; others may turn out so.

    Raises:
        NotNativeError: The callee is not native, or it is given what is not known well enough.
    """
    callee = program.functions[call.function]
    if call.function in why_not and call.function not in asked:
        match callee.code[0]:
            case bc.CallHost(_, host) if callee.name.startswith(bc.EXTERN):
                raise NotNativeError(f"it calls the host's function {program.hosts[host]}")
            case _:
                why = why_not[call.function]
                raise NotNativeError(f"it calls {callee.name}, which is bytecode: {why}")
    if not settled and call.function not in why_not:
        return
    what = f"it gives {callee.name} what has no known dtype or shape"
    if call.function in asked:
        require_told(code, call.args, what)
    elif not literals(code).isdisjoint(bc.leaves(call.args)):
        raise NotNativeError(f"it gives {callee.name} a text or a dtype")
    for param, argument in zip(callee.params, call.args, strict=True):
        if not _fits(param.spec, argument, code, whole=call.function in why_not):
            raise NotNativeError(f"it gives {callee.name} a {param.name} of unknown dtype or shape")
