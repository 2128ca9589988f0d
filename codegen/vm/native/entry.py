"""The entry of a native function: a METH_FASTCALL builtin as LLVM IR.

Checks that the arguments are plain numpy arrays of the right dtype and shape, binds the symbols,
allocates the outputs and the arena, runs the native function (without the GIL if there is enough
work), and gives back arrays. Whatever it does not expect goes to ``self``, the Python function that
handles or refuses it, unless it is tensors that can be viewed as arrays (`exchange`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from unity.codegen.vm.native import interpreted, late
from unity.codegen.vm.native.body import fact_conditions
from unity.codegen.vm.native.call import DEPTH
from unity.codegen.vm.native.layout import Layout, byte_count
from unity.codegen.vm.native.prelude import api
from unity.codegen.vm.native.printing import PRINTED, tell_unfinished
from unity.codegen.vm.native.text import Text, disjoint
from unity.codegen.vm.native.values import load_value
from unity.ir.dtype import HANDLE, dtype, int_range
from unity.runtime import native_info as n
from unity.runtime import program as p
from unity.runtime.sizes import Size, Slot, definitions

RELEASE_BYTES = 1 << 14  # less memory than this is not worth 35 ns for releasing the GIL
# The float32 numbers farthest from zero, as LLVM writes doubles.
LARGEST_SINGLE, LEAST_SINGLE = "0x47EFFFFFE0000000", "0xC7EFFFFFE0000000"
ARENA_HEADER = 64  # an arena starts with: the next free one, its size


def entry_text(
    index: int,
    layout: Layout,
    dtypes: list[str],
    *,
    uses_constants: bool,
    prints: bool,
    asks: bool,
) -> str:
    """The text of ``unity_entry_<index>`` and ``unity_release_<index>``.

    Args:
        index: The function's index in the program.
        layout: Its plan.
        dtypes: The dtype table of the module, added to.
        uses_constants: Whether it reads constants (weights), which is work worth releasing the GIL.
        prints: Whether something in the module prints.
        asks: Whether it has the interpreter run functions.
    """
    entry = _Entry(index, layout, dtypes, prints, asks)
    entry.arguments()
    entry.outputs()
    entry.arena()
    entry.run(always_release=uses_constants)
    entry.results()
    entry.exits()
    header = (
        f"define ptr @unity_entry_{index}(ptr %self, ptr %args, i64 %count, ptr %names) nounwind {{"
    )
    free = f"@unity_free_{index} = internal global ptr null"
    return "\n".join([free, header, *entry.t.lines, "}", _release_text(index)])


@dataclass(frozen=True, slots=True)
class _Tuple:
    """A result that is a tuple: where it is, and the tuples among its fields."""

    place: str
    fields: Sequence[_Tuple | None]


class _Entry:
    """State while an entry is written."""

    def __init__(
        self, index: int, layout: Layout, dtypes: list[str], prints: bool, asks: bool
    ) -> None:
        self.index, self.layout, self.dtypes = index, layout, dtypes
        self.prints, self.asks = prints, asks
        self.t = Text()
        self.blocks = 0

    def api(self, name: str) -> str:
        """A function or type of the runtime's table."""
        return self.t.load("ptr", "@unity_python", api(name), "ptr")

    def dtype(self, name: str) -> str:
        """A numpy dtype object."""
        if name not in self.dtypes:
            self.dtypes.append(name)
        return self.t.load("ptr", "@unity_dtypes", self.dtypes.index(name), "ptr")

    def go_on_if(self, condition: str, otherwise: str) -> None:
        """Leave for `otherwise` unless the condition holds."""
        following = f"b{self.blocks}"
        self.blocks += 1
        self.t.do(f"br i1 {condition}, label %{following}, label %{otherwise}")
        sizes = dict(self.t.sizes)
        self.t.block(following)
        self.t.sizes.update(sizes)  # the block before is this one's only predecessor

    def arguments(self) -> None:
        """Check the arguments and bind the symbols."""
        t, layout = self.t, self.layout
        t.block("entry")
        t.do(f"%slots = alloca [{layout.slots + 1} x i64]")
        t.do(f"%inputs = alloca [{len(layout.inputs) + 1} x ptr]")
        t.do(f"%outputs = alloca [{len(layout.outputs) + 1} x ptr]")
        t.do(f"%objects = alloca [{len(layout.outputs) + 1} x ptr]")
        t.do(f"%values = alloca [{len(layout.values) + 1} x i64]")
        t.do(f"%dims = alloca [{sum(len(o.shape or ()) for o in layout.outputs) + 1} x i64]")
        t.do(f"%poll = alloca [{interpreted.WORDS} x i64]")
        if layout.late:
            t.do(f"%late = alloca [{late.words(layout)} x i64]")
        if layout.late_outputs:
            t.do("%outcome = alloca i64")
        t.do(f"%scalars = alloca [{len(layout.inputs) + 1} x i64]")
        right = t.let(f"icmp eq i64 %count, {len(layout.code.params)}")
        unnamed = t.let("icmp eq ptr %names, null")
        self.go_on_if(t.let(f"and i1 {right}, {unnamed}"), "slow")
        later: list[tuple[Size, str]] = []
        bound: set[int] = set()
        for k, spec in enumerate(layout.inputs):
            match spec:
                case p.TensorSpec():
                    self.argument(k, spec, bound, later)
                case p.ShapeSpec():
                    self.shape_argument(k, spec, bound, later)
                case p.ScalarSpec():
                    self.scalar_argument(k, spec, bound, later)
                case p.ObjectSpec():
                    t.store("ptr", self.given(k), "%inputs", k)
                case _:
                    assert_never(spec)
        for told in definitions([size for size, _ in later], bound):
            value, conditions = t.told(told, later[told.place][1])
            for condition in conditions:
                self.go_on_if(condition, "slow")
            self.bind(told.slot, value)
        for size, actual in later:
            self.go_on_if(t.let(f"icmp eq i64 {t.size(size)}, {actual}"), "slow")
        self.apart()

    def apart(self) -> None:
        """Check that arguments that are written over share no memory with others."""
        t, inputs = self.t, dict(enumerate(self.layout.inputs))
        tensors = {k: s for k, s in inputs.items() if isinstance(s, p.TensorSpec)}
        for k in sorted(self.layout.code.given_away):
            for other in tensors:
                if other == k or (other in self.layout.code.given_away and other < k):
                    continue
                ends = [t.load("ptr", "%inputs", x, "ptr") for x in (k, other)]
                sizes = [t.size(byte_count(tensors[x])) for x in (k, other)]
                self.go_on_if(disjoint(t, ends[0], sizes[0], ends[1], sizes[1]), "slow")

    def given(self, k: int) -> str:
        """The object that is input k: an argument, or a field of one that is a tuple."""
        t, (first, *fields) = self.t, self.layout.paths[k]
        found, spec = t.load("ptr", "%args", first, "ptr"), self.layout.code.params[first].spec
        for field in fields:
            assert isinstance(spec, p.TupleSpec)
            kind = t.load("ptr", found, n.OBJECT_TYPE)
            self.go_on_if(t.let(f"icmp eq ptr {kind}, {self.api('tuple')}"), "slow")
            count = t.let(f"call i64 {self.api('PyTuple_Size')}(ptr {found})")
            self.go_on_if(t.let(f"icmp eq i64 {count}, {len(spec.fields)}"), "slow")
            found = t.let(f"call ptr {self.api('PyTuple_GetItem')}(ptr {found}, i64 {field})")
            spec = spec.fields[field]
        return found

    def scalar_argument(
        self, k: int, spec: p.ScalarSpec, bound: set[int], later: list[tuple[Size, str]]
    ) -> None:
        """Check one argument that is a number: an int, a float or a bool of Python."""
        t, given = self.t, self.given(k)
        kind = t.load("ptr", given, n.OBJECT_TYPE)
        if spec.dtype == "bool":
            false, true = (t.let(f"icmp eq ptr {given}, {self.api(v)}") for v in ("False", "True"))
            self.go_on_if(t.let(f"or i1 {false}, {true}"), "slow")
            t.store("i64", t.let(f"zext i1 {true} to i64"), "%scalars", k)
        elif dtype(spec.dtype).is_int:
            self.go_on_if(t.let(f"icmp eq ptr {kind}, {self.api('int')}"), "slow")
            convert = self.api("PyLong_AsLongLongAndOverflow")
            actual = t.let(f"call i64 {convert}(ptr {given}, ptr %poll)")
            self.go_on_if(t.let(f"icmp eq i32 {t.load('i32', '%poll', 0)}, 0"), "slow")
            if spec.dtype != "int64":
                low, high = int_range(dtype(spec.dtype))
                for test, end in (("sge", low), ("sle", high)):
                    self.go_on_if(t.let(f"icmp {test} i64 {actual}, {end}"), "slow")
            t.store("i64", actual, "%scalars", k)
            if spec.value is not None:
                self.go_on_if(t.let(f"icmp sge i64 {actual}, 0"), "slow")
                self.size(spec.value, actual, bound, later)
        else:
            self.go_on_if(t.let(f"icmp eq ptr {kind}, {self.api('float')}"), "slow")
            actual = t.let(f"call double {self.api('PyFloat_AsDouble')}(ptr {given})")
            if spec.dtype == "float32":  # what is beyond it is for `self` to refuse
                for test, most in (("ule", LARGEST_SINGLE), ("uge", LEAST_SINGLE)):
                    self.go_on_if(t.let(f"fcmp {test} double {actual}, {most}"), "slow")
            t.store("double", actual, "%scalars", k)
        t.store("ptr", t.at("%scalars", k, "i64"), "%inputs", k)

    def argument(
        self, k: int, spec: p.TensorSpec, bound: set[int], later: list[tuple[Size, str]]
    ) -> None:
        """Check one argument: type, dtype, layout, rank, sizes."""
        t, layout, shape = self.t, self.layout, spec.shape or ()
        array = self.given(k)
        kind = t.load("ptr", array, n.OBJECT_TYPE)
        self.go_on_if(t.let(f"icmp eq ptr {kind}, {self.api('ndarray')}"), "slow")
        assert spec.dtype is not None
        descr = t.load("ptr", array, n.ARRAY_DESCR)
        same = t.let(f"icmp eq ptr {descr}, {self.dtype(spec.dtype)}")
        needed = n.WRITABLE_FLAGS if k in layout.code.given_away else n.PLAIN_FLAGS
        flags = t.let(f"and i32 {t.load('i32', array, n.ARRAY_FLAGS)}, {needed}")
        plain = t.let(f"icmp eq i32 {flags}, {needed}")
        rank = t.let(f"icmp eq i32 {t.load('i32', array, n.ARRAY_NDIM)}, {len(shape)}")
        both = t.let(f"and i1 {same}, {plain}")
        self.go_on_if(t.let(f"and i1 {both}, {rank}"), "slow")
        t.store("ptr", t.load("ptr", array, n.ARRAY_DATA), "%inputs", k)
        sizes = t.load("ptr", array, n.ARRAY_SHAPE) if shape else ""
        for axis, size in enumerate(shape):
            self.size(size, t.load("i64", sizes, axis, "i64"), bound, later)

    def shape_argument(
        self, k: int, spec: p.ShapeSpec, bound: set[int], later: list[tuple[Size, str]]
    ) -> None:
        """Check one argument that is a tuple of sizes."""
        t, dims = self.t, spec.dims or ()
        given = self.given(k)
        kind = t.load("ptr", given, n.OBJECT_TYPE)
        self.go_on_if(t.let(f"icmp eq ptr {kind}, {self.api('tuple')}"), "slow")
        count = t.let(f"call i64 {self.api('PyTuple_Size')}(ptr {given})")
        self.go_on_if(t.let(f"icmp eq i64 {count}, {len(dims)}"), "slow")
        t.store("ptr", "null", "%inputs", k)
        for i, size in enumerate(dims):
            item = t.let(f"call ptr {self.api('PyTuple_GetItem')}(ptr {given}, i64 {i})")
            whole = t.load("ptr", item, n.OBJECT_TYPE)
            self.go_on_if(t.let(f"icmp eq ptr {whole}, {self.api('int')}"), "slow")
            convert = self.api("PyLong_AsLongLongAndOverflow")
            actual = t.let(f"call i64 {convert}(ptr {item}, ptr %poll)")
            fits = t.let(f"icmp eq i32 {t.load('i32', '%poll', 0)}, 0")
            natural = t.let(f"icmp sge i64 {actual}, 0")
            self.go_on_if(t.let(f"and i1 {fits}, {natural}"), "slow")
            self.size(size, actual, bound, later)

    def size(self, size: Size, actual: str, bound: set[int], later: list[tuple[Size, str]]) -> None:
        """Bind or check one size."""
        if isinstance(size, Slot) and size.index not in bound:
            bound.add(size.index)
            self.bind(size.index, actual)
        elif isinstance(size, int):
            self.go_on_if(self.t.let(f"icmp eq i64 {actual}, {size}"), "slow")
        else:
            later.append((size, actual))

    def bind(self, slot: int, value: str) -> None:
        """Give a symbol its value, which has what is declared of it."""
        t = self.t
        t.store("i64", value, "%slots", slot)
        t.sizes[Slot(slot)] = value
        for _, condition in fact_conditions(t, value, self.layout.code.symbols[slot]):
            self.go_on_if(condition, "slow")

    def outputs(self) -> None:
        """Plan, then allocate the outputs as numpy arrays."""
        t, layout = self.t, self.layout
        t.do(f"%arena_bytes = call i64 @unity_plan_{self.index}(ptr %slots, ptr %dims)")
        self.go_on_if(t.let("icmp sge i64 %arena_bytes, 0"), "slow")
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
                t.do(f"call void {self.api('Py_IncRef')}(ptr {array})")
                t.store("ptr", array, "%objects", k)
                first += rank
                continue
            array = self.new_array(k, first)
            self.go_on_if(t.let(f"icmp ne ptr {array}, null"), f"drop{k}")
            t.store("ptr", t.load("ptr", array, n.ARRAY_DATA), "%outputs", k)
            first += rank

    def new_array(self, k: int, first: int) -> str:
        """An array for an output, whose dims begin at a place of ``%dims``; null without memory."""
        t, spec = self.t, self.layout.outputs[k]
        assert spec.dtype is not None
        descr = self.dtype(spec.dtype)
        t.do(f"call void {self.api('Py_IncRef')}(ptr {descr})")  # which the array takes
        rank, dims = len(spec.shape or ()), t.at("%dims", first, "i64")
        made = f"i32 {rank}, ptr {dims}, ptr {descr}, i64 {t.size(byte_count(spec))}, i64 {k}"
        array = t.let(f"call ptr @unity_new_array({made})")
        t.store("ptr", array, "%objects", k)
        return array

    def arena(self) -> None:
        """An arena from the free list (the GIL guards it), or a new one."""
        if not self.layout.places:
            self.t.do("br label %run")
            return
        t = self.t
        head = t.let(f"load ptr, ptr @unity_free_{self.index}")
        t.do(f"br i1 {t.let(f'icmp ne ptr {head}, null')}, label %reuse, label %grow")
        t.block("reuse")
        t.do(f"store ptr {t.let(f'load ptr, ptr {head}')}, ptr @unity_free_{self.index}")
        fits = t.let(f"icmp uge i64 {t.load('i64', head, 1, 'i64')}, %arena_bytes")
        t.do(f"br i1 {fits}, label %arena_ready, label %replace")
        t.block("replace")
        t.do(f"call void {self.api('free')}(ptr {t.load('ptr', head, 2, 'ptr')})")
        t.do("br label %grow")
        t.block("grow")
        size = t.let(f"add i64 %arena_bytes, {2 * ARENA_HEADER}")
        raw = t.let(f"call ptr {self.api('malloc')}(i64 {size})")
        self.go_on_if(t.let(f"icmp ne ptr {raw}, null"), "no_memory")
        end = t.let(f"ptrtoint ptr {t.at(raw, ARENA_HEADER - 1)} to i64")
        made = t.let(f"inttoptr i64 {t.let(f'and i64 {end}, {-ARENA_HEADER}')} to ptr")
        t.store("i64", "%arena_bytes", made, 1)
        t.store("ptr", raw, made, 2)
        grown = f"b{self.blocks - 1}"
        t.do("br label %arena_ready")
        t.block("arena_ready")
        t.do(f"%arena = phi ptr [ {head}, %reuse ], [ {made}, %{grown} ]")
        t.do("br label %run")

    def run(self, *, always_release: bool) -> None:
        """Run, without the GIL if there is enough to do."""
        t = self.t
        t.block("run")
        has_arena = bool(self.layout.places)
        base = t.at("%arena", ARENA_HEADER) if has_arena else "null"
        t.store("i64", "0", "%poll", 0)
        t.store("ptr", "null", "%poll", 1)
        t.store("i64", "0", "%poll", DEPTH)
        t.store("i64", "0", "%poll", PRINTED)
        t.store("i64", "0", "%poll", interpreted.ASKED)
        if self.layout.late:
            late.begin(t, self.layout, "%late")
        t.do(f"br i1 {self.worth_releasing(always_release)}, label %leave, label %go")
        t.block("leave")
        state = t.let(f"call ptr {self.api('PyEval_SaveThread')}()")
        t.store("ptr", state, "%poll", 1)
        t.do("br label %go")
        t.block("go")
        t.do(
            f"%code = call i64 @unity_run_{self.index}"
            f"(ptr %inputs, ptr %outputs, ptr %slots, ptr {base}, ptr %poll)"
        )
        left = t.load("ptr", "%poll", 1, "ptr")
        t.do(f"br i1 {t.let(f'icmp eq ptr {left}, null')}, label %back, label %take")
        t.block("take")
        t.do(f"call void {self.api('PyEval_RestoreThread')}(ptr {left})")
        t.do("br label %back")
        t.block("back")
        if self.layout.late_outputs:
            self.late_outputs()
        if self.layout.late:
            late.vacate(t, self.layout, "%late")
        if has_arena:
            t.do(f"store ptr {t.let(f'load ptr, ptr @unity_free_{self.index}')}, ptr %arena")
            t.do(f"store ptr %arena, ptr @unity_free_{self.index}")
        if self.layout.late_outputs:
            t.do("%ended = load i64, ptr %outcome")
        self.go_on_if(t.let(f"icmp eq i64 {self.ended}, 0"), "failed")

    @property
    def ended(self) -> str:
        """How the run ended, and what came of its results."""
        return "%ended" if self.layout.late_outputs else "%code"

    def late_outputs(self) -> None:
        """Outputs whose sizes are known now, copied while what they lie in is still ours."""
        t, layout = self.t, self.layout
        t.do("store i64 %code, ptr %outcome")
        t.do(f"br i1 {t.let('icmp eq i64 %code, 0')}, label %gather, label %gathered")
        t.block("gather")
        first = 0
        for k, spec in enumerate(layout.outputs):
            if k in layout.late_outputs:
                for axis, size in enumerate(spec.shape or ()):
                    t.store("i64", t.size(size), "%dims", first + axis)
                array = self.new_array(k, first)
                self.go_on_if(t.let(f"icmp ne ptr {array}, null"), "ungathered")
                to = t.load("ptr", array, n.ARRAY_DATA)
                source = t.load("ptr", "%outputs", k, "ptr")
                given = f"ptr {to}, ptr {source}, i64 {t.size(byte_count(spec))}, i1 false"
                t.do(f"call void @llvm.memmove.p0.p0.i64({given})")
            first += len(spec.shape or ())
        t.do("br label %gathered")
        t.block("ungathered")
        t.do(f"call void {self.api('PyErr_Clear')}()")  # the slow way says what there's no room for
        t.do(f"store i64 {n.FAILED}, ptr %outcome")
        t.do("br label %gathered")
        t.block("gathered")

    def worth_releasing(self, always: bool) -> str:
        """Whether the call touches enough memory."""
        t = self.t
        if always or self.layout.late or self.layout.late_outputs:
            return "true"
        if any(isinstance(i, p.Jump | p.CallFunction) for i in self.layout.code.code):
            return "true"
        total = "%arena_bytes"
        for spec in (*self.layout.inputs, *self.layout.outputs):
            if not isinstance(spec, p.TensorSpec):
                continue
            total = t.let(f"add i64 {total}, {t.size(byte_count(spec))}")
        return t.let(f"icmp ugt i64 {total}, {RELEASE_BYTES}")

    def results(self) -> None:
        """One array or number, or a tuple of them."""
        t, value, count = self.t, _returned(self.layout.code), len(self.layout.outputs)
        for k in sorted(self.layout.values):
            made = self.value(k)
            self.go_on_if(t.let(f"icmp ne ptr {made}, null"), f"drop{count}")
            t.store("ptr", made, "%objects", k)
        if self.asks:
            interpreted.tell_end(t, "0", "well")
        if isinstance(value, int):
            t.do(f"ret ptr {t.load('ptr', '%objects', 0, 'ptr')}")
            return
        whole = self.empty(value)  # all are there before any takes what else has to be dropped
        self.fill(whole, iter(range(count)))
        t.do(f"ret ptr {whole.place}")

    def empty(self, tree: tuple[p.Tree, ...]) -> _Tuple:
        """A tuple without items, and those in it."""
        made = self.t.let(f"call ptr {self.api('PyTuple_New')}(i64 {len(tree)})")
        self.go_on_if(self.t.let(f"icmp ne ptr {made}, null"), f"drop{len(self.layout.outputs)}")
        return _Tuple(made, [self.empty(f) if isinstance(f, tuple) else None for f in tree])

    def fill(self, whole: _Tuple, outputs: Iterator[int]) -> None:
        """Give a tuple its items, which it takes."""
        t = self.t
        for k, field in enumerate(whole.fields):
            if field is None:
                item = t.load("ptr", "%objects", next(outputs), "ptr")
            else:
                self.fill(field, outputs)
                item = field.place
            t.do(f"call i32 {self.api('PyTuple_SetItem')}(ptr {whole.place}, i64 {k}, ptr {item})")

    def value(self, k: int) -> str:
        """An output that is an object or a number, as Python's; null without memory."""
        t, kind = self.t, dtype(self.layout.outputs[k].dtype or "")
        value = load_value(t, kind, t.load("ptr", "%outputs", k, "ptr"))
        if kind == HANDLE:
            t.do(f"call void {self.api('Py_IncRef')}(ptr {value})")
            return value
        if kind.is_float:
            return t.let(f"call ptr {self.api('PyFloat_FromDouble')}(double {value})")
        if kind.is_int:
            return t.let(f"call ptr {self.api('PyLong_FromLongLong')}(i64 {value})")
        true = t.let(f"icmp ne i64 {value}, 0")
        found = t.let(f"select i1 {true}, ptr {self.api('True')}, ptr {self.api('False')}")
        t.do(f"call void {self.api('Py_IncRef')}(ptr {found})")
        return found

    def exits(self) -> None:
        """Failure and the slow way; ``drop<K>`` gives up the first K outputs and goes there."""
        t, count = self.t, len(self.layout.outputs)
        t.block("failed")
        for k in range(count):
            array = t.load("ptr", "%objects", k, "ptr")
            t.do(f"call void {self.api('Py_DecRef')}(ptr {array})")
        stopped = t.let(f"icmp eq i64 {self.ended}, {n.INTERRUPTED}")
        t.do(f"br i1 {stopped}, label %null, label %wrong")
        t.block("wrong")
        if self.asks:
            interpreted.tell_end(t, str(n.FAILED), "badly")
        if self.prints:
            tell_unfinished(t)
        t.do("br label %slow")
        t.block("slow")
        if any(isinstance(spec, p.ObjectSpec) for spec in self.layout.inputs):  # may be a tensor
            handler, given = self.api("PyObject_Vectorcall"), ""
        else:
            handler, given = "@unity_exchange", f"ptr @unity_entry_{self.index}, "
        given += "ptr %self, ptr %args, i64 %count, ptr %names"
        t.do(f"ret ptr {t.let(f'call ptr {handler}({given})')}")
        if self.layout.places:
            t.block("no_memory")
            t.do(f"br label %drop{count}")
        for k in range(count, -1, -1):
            t.block(f"drop{k}")
            if k:
                array = t.load("ptr", "%objects", k - 1, "ptr")
                t.do(f"call void {self.api('Py_DecRef')}(ptr {array})")
                t.do(f"br label %drop{k - 1}")
        t.do(f"call void {self.api('PyErr_Clear')}()")  # the slow way says what there's no room for
        t.do("br label %slow")
        t.block("null")
        t.do("ret ptr null")


def _returned(code: p.FunctionCode) -> p.Tree:
    return next(i.value for i in code.code if isinstance(i, p.Return))


def _release_text(index: int) -> str:
    """Frees the arenas kept for reuse; nothing may be running."""
    return f"""\
define void @unity_release_{index}() nounwind {{
entry:
  br label %next
next:
  %head = load ptr, ptr @unity_free_{index}
  %none = icmp eq ptr %head, null
  br i1 %none, label %end, label %drop
drop:
  %after = load ptr, ptr %head
  store ptr %after, ptr @unity_free_{index}
  %place = getelementptr ptr, ptr %head, i64 2
  %raw = load ptr, ptr %place
  %free = load ptr, ptr getelementptr (ptr, ptr @unity_python, i64 {api("free")})
  call void %free(ptr %raw)
  br label %next
end:
  ret void
}}"""
