"""What an entry is given: checked, and the symbols bound.

Each argument has to be a plain numpy array of the right dtype and rank, a number or a tuple of the
right length; sizes that tell no symbol directly are compared once all are known. Whatever does not
fit goes to the block ``slow``.
"""

from __future__ import annotations

from typing import assert_never

from unity.codegen.vm.native.body import fact_conditions
from unity.codegen.vm.native.layout import byte_count
from unity.codegen.vm.native.text import disjoint
from unity.codegen.vm.native.writer import EntryWriter
from unity.ir.dtype import dtype, int_range
from unity.runtime import bytecode as bc
from unity.runtime import native_info as n
from unity.runtime.bytecode.sizes import Size, Slot, definitions

# The float32 numbers farthest from zero, as LLVM writes doubles.
LARGEST_SINGLE, LEAST_SINGLE = "0x47EFFFFFE0000000", "0xC7EFFFFFE0000000"


def check_arguments(e: EntryWriter) -> None:
    """Check the arguments and bind the symbols: fills ``%inputs``, ``%scalars`` and ``%slots``."""
    _Arguments(e).check()


class _Arguments:
    """State while the checks are written.

    Attributes:
        bound: Slots that have values.
        later: Sizes that are compared with what they are, the second, when all slots have values.
    """

    def __init__(self, e: EntryWriter) -> None:
        self.e, self.t, self.layout = e, e.t, e.layout
        self.bound: set[int] = set()
        self.later: list[tuple[Size, str]] = []

    def check(self) -> None:
        """Check them all and bind the symbols."""
        t, layout = self.t, self.layout
        right = t.let(f"icmp eq i64 %count, {len(layout.code.params)}")
        unnamed = t.let("icmp eq ptr %names, null")
        self.e.go_on_if(t.let(f"and i1 {right}, {unnamed}"), "slow")
        for k, spec in enumerate(layout.inputs):
            match spec:
                case bc.TensorSpec():
                    self.tensor(k, spec)
                case bc.ShapeSpec():
                    self.shape(k, spec)
                case bc.ScalarSpec():
                    self.scalar(k, spec)
                case bc.ObjectSpec():
                    t.store("ptr", self.given(k), "%inputs", k)
                case _:
                    assert_never(spec)
        for told in definitions([size for size, _ in self.later], self.bound):
            value, conditions = t.told(told, self.later[told.place][1])
            for condition in conditions:
                self.e.go_on_if(condition, "slow")
            self.bind(told.slot, value)
        for size, actual in self.later:
            self.e.go_on_if(t.let(f"icmp eq i64 {t.size(size)}, {actual}"), "slow")
        self.apart()

    def apart(self) -> None:
        """Check that arguments that are written over share no memory with others."""
        t, inputs = self.t, dict(enumerate(self.layout.inputs))
        tensors = {k: s for k, s in inputs.items() if isinstance(s, bc.TensorSpec)}
        for k in sorted(self.layout.code.given_away):
            for other in tensors:
                if other == k or (other in self.layout.code.given_away and other < k):
                    continue
                ends = [t.load("ptr", "%inputs", x, "ptr") for x in (k, other)]
                sizes = [t.size(byte_count(tensors[x])) for x in (k, other)]
                self.e.go_on_if(disjoint(t, ends[0], sizes[0], ends[1], sizes[1]), "slow")

    def given(self, k: int) -> str:
        """The object that is input k: an argument, or a field of one that is a tuple."""
        t, (first, *fields) = self.t, self.layout.paths[k]
        found, spec = t.load("ptr", "%args", first, "ptr"), self.layout.code.params[first].spec
        for field in fields:
            assert isinstance(spec, bc.TupleSpec)
            kind = t.load("ptr", found, n.OBJECT_TYPE)
            self.e.go_on_if(t.let(f"icmp eq ptr {kind}, {self.e.api('tuple')}"), "slow")
            count = t.let(f"call i64 {self.e.api('PyTuple_Size')}(ptr {found})")
            self.e.go_on_if(t.let(f"icmp eq i64 {count}, {len(spec.fields)}"), "slow")
            found = t.let(f"call ptr {self.e.api('PyTuple_GetItem')}(ptr {found}, i64 {field})")
            spec = spec.fields[field]
        return found

    def scalar(self, k: int, spec: bc.ScalarSpec) -> None:
        """Check one argument that is a number: an int, a float or a bool of Python."""
        t, given = self.t, self.given(k)
        kind = t.load("ptr", given, n.OBJECT_TYPE)
        if spec.dtype == "bool":
            false, true = (
                t.let(f"icmp eq ptr {given}, {self.e.api(v)}") for v in ("False", "True")
            )
            self.e.go_on_if(t.let(f"or i1 {false}, {true}"), "slow")
            t.store("i64", t.let(f"zext i1 {true} to i64"), "%scalars", k)
        elif dtype(spec.dtype).is_int:
            self.e.go_on_if(t.let(f"icmp eq ptr {kind}, {self.e.api('int')}"), "slow")
            convert = self.e.api("PyLong_AsLongLongAndOverflow")
            actual = t.let(f"call i64 {convert}(ptr {given}, ptr %poll)")
            self.e.go_on_if(t.let(f"icmp eq i32 {t.load('i32', '%poll', 0)}, 0"), "slow")
            if spec.dtype != "int64":
                low, high = int_range(dtype(spec.dtype))
                for test, end in (("sge", low), ("sle", high)):
                    self.e.go_on_if(t.let(f"icmp {test} i64 {actual}, {end}"), "slow")
            t.store("i64", actual, "%scalars", k)
            if spec.value is not None:
                self.e.go_on_if(t.let(f"icmp sge i64 {actual}, 0"), "slow")
                self.size(spec.value, actual)
        else:
            self.e.go_on_if(t.let(f"icmp eq ptr {kind}, {self.e.api('float')}"), "slow")
            actual = t.let(f"call double {self.e.api('PyFloat_AsDouble')}(ptr {given})")
            if spec.dtype == "float32":  # what is beyond it is for `self` to refuse
                for test, most in (("ule", LARGEST_SINGLE), ("uge", LEAST_SINGLE)):
                    self.e.go_on_if(t.let(f"fcmp {test} double {actual}, {most}"), "slow")
            t.store("double", actual, "%scalars", k)
        t.store("ptr", t.at("%scalars", k, "i64"), "%inputs", k)

    def tensor(self, k: int, spec: bc.TensorSpec) -> None:
        """Check one argument: type, dtype, layout, rank, sizes."""
        t, layout, shape = self.t, self.layout, spec.shape or ()
        array = self.given(k)
        kind = t.load("ptr", array, n.OBJECT_TYPE)
        self.e.go_on_if(t.let(f"icmp eq ptr {kind}, {self.e.api('ndarray')}"), "slow")
        assert spec.dtype is not None
        descr = t.load("ptr", array, n.ARRAY_DESCR)
        same = t.let(f"icmp eq ptr {descr}, {self.e.dtype(spec.dtype)}")
        needed = n.WRITABLE_FLAGS if k in layout.code.given_away else n.PLAIN_FLAGS
        flags = t.let(f"and i32 {t.load('i32', array, n.ARRAY_FLAGS)}, {needed}")
        plain = t.let(f"icmp eq i32 {flags}, {needed}")
        rank = t.let(f"icmp eq i32 {t.load('i32', array, n.ARRAY_NDIM)}, {len(shape)}")
        both = t.let(f"and i1 {same}, {plain}")
        self.e.go_on_if(t.let(f"and i1 {both}, {rank}"), "slow")
        t.store("ptr", t.load("ptr", array, n.ARRAY_DATA), "%inputs", k)
        sizes = t.load("ptr", array, n.ARRAY_SHAPE) if shape else ""
        for axis, size in enumerate(shape):
            self.size(size, t.load("i64", sizes, axis, "i64"))

    def shape(self, k: int, spec: bc.ShapeSpec) -> None:
        """Check one argument that is a tuple of sizes."""
        t, dims = self.t, spec.dims or ()
        given = self.given(k)
        kind = t.load("ptr", given, n.OBJECT_TYPE)
        self.e.go_on_if(t.let(f"icmp eq ptr {kind}, {self.e.api('tuple')}"), "slow")
        count = t.let(f"call i64 {self.e.api('PyTuple_Size')}(ptr {given})")
        self.e.go_on_if(t.let(f"icmp eq i64 {count}, {len(dims)}"), "slow")
        t.store("ptr", "null", "%inputs", k)
        for i, size in enumerate(dims):
            item = t.let(f"call ptr {self.e.api('PyTuple_GetItem')}(ptr {given}, i64 {i})")
            whole = t.load("ptr", item, n.OBJECT_TYPE)
            self.e.go_on_if(t.let(f"icmp eq ptr {whole}, {self.e.api('int')}"), "slow")
            convert = self.e.api("PyLong_AsLongLongAndOverflow")
            actual = t.let(f"call i64 {convert}(ptr {item}, ptr %poll)")
            fits = t.let(f"icmp eq i32 {t.load('i32', '%poll', 0)}, 0")
            natural = t.let(f"icmp sge i64 {actual}, 0")
            self.e.go_on_if(t.let(f"and i1 {fits}, {natural}"), "slow")
            self.size(size, actual)

    def size(self, size: Size, actual: str) -> None:
        """Bind or check one size."""
        if isinstance(size, Slot) and size.index not in self.bound:
            self.bound.add(size.index)
            self.bind(size.index, actual)
        elif isinstance(size, int):
            self.e.go_on_if(self.t.let(f"icmp eq i64 {actual}, {size}"), "slow")
        else:
            self.later.append((size, actual))

    def bind(self, slot: int, value: str) -> None:
        """Give a symbol its value, which has what is declared of it."""
        t = self.t
        t.store("i64", value, "%slots", slot)
        t.sizes[Slot(slot)] = value
        for _, condition in fact_conditions(t, value, self.layout.code.symbols[slot]):
            self.e.go_on_if(condition, "slow")
