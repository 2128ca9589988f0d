"""Prim expressions to instructions: one method a node, the current lane mask as the only context.

A `Select` whose branches load more than its condition is evaluated lazily: on a scalar condition by
a branch, on a vector condition by masking the loads with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from unity.arith.divisors import never_traps
from unity.ir.dtype import INT64, DType
from unity.ir.foreign import ADDRESS_OF, CALL_EXTERN
from unity.ir.leaves import leaves
from unity.ir.prim_expr import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Imm,
    Intrinsic,
    Load,
    Not,
    PrimExpr,
    PrimVar,
    Ramp,
    Select,
    SizeVar,
)
from unity.ir.stmt import Buffer

from .arithmetic import bool_binary, compare, float_binary, int_binary, passing_nan
from .bounds import new_conditions
from .cast import cast
from .emitter import Emitter, float_text, int_text, steps_text
from .facts.affine import as_near, as_ramp, is_nonnegative, is_within
from .facts.certain import is_broadcast_alone, is_nonpositive, is_number, split_of
from .masks import COUNTED, Masks, split_lanes
from .math.table import EXP_NONPOSITIVE, intrinsic
from .memory import MOST_APART, At, Place, Run, Scattered, Strided, load, load_near, stretches
from .narrow import round_to
from .scope import Scope
from .types import is_narrow, memory_type, value_type

MOST_STRETCHES = 4
"""Stretches of memory whose loads and shuffles take less than a gather."""
OUT_OF_BOUNDS = -2
"""What a kernel built with `checks` returns when an index is outside its buffer."""

CONTRACT = "contract "
REASSOCIATE = "reassoc contract "


class Expressions(Masks):
    """Lowering of expressions within one LLVM function.

    Attributes:
        em: Where instructions go.
        values: The register of each variable in scope.
        pointers: The base pointer of each buffer in scope.
        counters: Variables that are loop counters or sizes: sums and products of them as
            indices do not overflow.
        nonnegative: Variables known not to be negative.
        fail: Emits the code that leaves the function with a result, ending the block.
        checks: Whether every access asserts its index.
        proven: Identities of accesses that need no check.
        numbers: Buffers that never hold NaN.
        first_lanes: Variables that are masks of some of the first lanes.
    """

    __slots__ = (
        "_sizes",
        "checks",
        "counters",
        "fail",
        "first_lanes",
        "nonnegative",
        "numbers",
        "pointers",
        "proven",
        "values",
    )

    def __init__(
        self,
        em: Emitter,
        fail: Callable[[str], None],
        *,
        checks: bool,
        proven: frozenset[int] = frozenset(),
        numbers: frozenset[Buffer] = frozenset(),
    ) -> None:
        super().__init__(em)
        self.fail = fail
        self.checks = checks
        self.proven = proven
        self.numbers = numbers
        self.first_lanes: set[PrimVar] = set()
        self.values: Scope[PrimVar | SizeVar] = Scope()
        self.pointers: Scope[Buffer] = Scope()
        self.counters: set[PrimVar] = set()
        self.nonnegative: set[PrimVar] = set()
        self._sizes: dict[Buffer, str] = {}

    def enclose(
        self, take: Callable[[Buffer | PrimVar | SizeVar], str], outer: Expressions
    ) -> None:
        """Find what is not in scope by `take`, and know of it what is known outside."""
        self.values.enclosing = take
        self.pointers.enclosing = take
        self.counters |= outer.counters
        self.nonnegative |= outer.nonnegative
        self.first_lanes |= outer.first_lanes

    def expr(self, e: PrimExpr) -> str:
        """The register (or constant) of an expression's value."""
        match e:
            case PrimVar() | SizeVar():
                return self.values[e]
            case Imm():
                return self._imm(e)
            case Binary():
                return self._binary(e, CONTRACT)
            case Load():
                return self._load(e)
            case Compare():
                return self._compare(e)
            case Select():
                return self._select(e)
            case Cast():
                target = e.dtype.with_lanes(e.value.dtype.lanes)
                value = cast(self.em, e.value.dtype, target, self.expr(e.value))
                return self._widened(value, target, e.dtype.lanes)
            case Intrinsic():
                return self._intrinsic(e)
            case Not():
                t = value_type(e.dtype)
                return self.em.pure(f"xor {t.text} {self.expr(e.a)}, {int_text(1, t)}")
            case Broadcast():
                return self.em.splat(self.expr(e.value), value_type(e.dtype))
            case Ramp():
                return self._ramp(e)
            case _:
                assert_never(e)

    def reduction(self, e: Binary) -> str:
        """The value of ``old + x`` (or another operation) updating a reduction, in any order."""
        if e.op in ("min", "max") and e.dtype.is_float and e.dtype.lanes == 1:
            # The one form of a NaN-propagating minimum that LLVM's vectorizer reduces.
            t = value_type(e.dtype)
            name = "minimum" if e.op == "min" else "maximum"
            return self.em.intrinsic(name, t, self.expr(e.a), self.expr(e.b), flags="nsz ")
        return self._binary(e, REASSOCIATE)

    def index(self, e: PrimExpr) -> str:
        """The value of an int64 expression used as an index or a bound."""
        return self._index(e)[0]

    def _index(self, e: PrimExpr) -> tuple[str, bool]:
        """The value, and whether it is made of counters only (its arithmetic does not overflow)."""
        match e:
            case SizeVar():
                return self.values[e], True
            case PrimVar():
                return self.values[e], e in self.counters
            case Imm():
                return str(int(e.value)), True
            case Binary("add" | "sub" | "mul" as op, a, b) if e.dtype == INT64:
                known = self.em.indices.get(e)
                if known is not None:
                    return known
                (x, sure_x), (y, sure_y) = self._index(a), self._index(b)
                sure = sure_x and sure_y
                return self._noted(e, self._combined(op, x, y, "nsw " if sure else ""), sure)
            case Binary():
                known = self.em.indices.get(e)
                return known or self._noted(e, self.expr(e), self._is_counted(e))
            case _:
                return self.expr(e), self._is_counted(e)

    def _noted(self, e: PrimExpr, value: str, sure: bool) -> tuple[str, bool]:
        """What an index came to, kept; what it loads may be another number when it is met again."""
        held, made = leaves(e), (value, sure)
        return made if held.loads or held.calls or held.selects else self.em.note(e, made)

    def _combined(self, op: str, x: str, y: str, flags: str) -> str:
        if op == "add":
            return self.em.add(x, y, flags)
        if op == "mul":
            return self.em.mul(x, y, flags)
        if y[0] != "%":
            return self.em.add(x, str(-int(y)), flags)
        return self.em.pure(f"sub {flags}i64 {x}, {y}")

    def bind(self, var: PrimVar, value: str) -> None:
        """Let a variable be a value from here on; copies of a loop have the same variables."""
        if self.values.get(var, value) != value:
            self.em.indices.clear()  # what was made of its last value
        self.values[var] = value

    def _is_counted(self, e: PrimExpr) -> bool:
        match e:
            case PrimVar():
                return e in self.counters
            case Binary(_, a, b):
                return self._is_counted(a) and self._is_counted(b)
            case _:
                return isinstance(e, Imm | SizeVar)

    def _imm(self, e: Imm) -> str:
        t = value_type(e.dtype)
        if t.is_float:
            text = float_text(float(e.value), t)
            return round_to(self.em, e.dtype, text) if is_narrow(e.dtype) else text
        return int_text(int(e.value), t)

    def _widened(self, value: str, dtype: DType, lanes: int) -> str:
        """A scalar splat to the lanes of what it meets."""
        if dtype.lanes == lanes:
            return value
        assert dtype.lanes == 1, f"{dtype} where {lanes} lanes are needed"
        return self.em.splat(value, value_type(dtype.with_lanes(lanes)))

    def _pair(self, a: PrimExpr, b: PrimExpr) -> tuple[str, str, DType]:
        """Both operands, of equal lanes."""
        x, y = a.dtype, b.dtype
        assert x.name == y.name, f"operands of {x} and {y}"
        lanes = max(x.lanes, y.lanes)
        return (
            self._widened(self.expr(a), x, lanes),
            self._widened(self.expr(b), y, lanes),
            x.with_lanes(lanes),
        )

    def _binary(self, e: Binary, flags: str) -> str:
        if e.dtype.is_float:
            if e.op in ("add", "sub") and not is_narrow(e.dtype):
                fused = self._multiply_add(e, flags)
                if fused is not None:
                    return fused
            a, b, dtype = self._pair(e.a, e.b)
            if e.op in ("fmin", "fmax"):
                sure = tuple(is_number(x, self.numbers) for x in (e.a, e.b))
                return passing_nan(self.em, e.op, value_type(dtype), a, b, sure)
            return float_binary(self.em, e.op, dtype, a, b, "" if e.op == "div" else flags)
        a, b, dtype = self._pair(e.a, e.b)
        if dtype.kind == "bool":
            return bool_binary(self.em, e.op, value_type(dtype), a, b)
        if dtype == INT64 and e.op in ("add", "mul"):
            return self.em.add(a, b, "") if e.op == "add" else self.em.mul(a, b, "")
        divides = e.op.endswith(("div", "mod"))
        plain = divides and self.is_nonnegative(e.a) and self.is_nonnegative(e.b)
        safe = divides and never_traps(e.b)
        return int_binary(self.em, e.op, dtype, a, b, nonnegative=plain, safe=safe)

    def is_nonnegative(self, e: PrimExpr) -> bool:
        """Whether an index expression is certainly not negative."""
        return is_nonnegative(e, self.nonnegative)

    def _compare(self, e: Compare) -> str:
        split = split_of(e) if self.em.unit.abilities.masks else None
        if split is None or e.dtype.lanes not in COUNTED:
            a, b, dtype = self._pair(e.a, e.b)
            return compare(self.em, e.op, dtype, a, b)
        (begin, counted), (end, sure) = self._index(split.begin), self._index(split.end)
        return split_lanes(self.em, e.dtype.lanes, split, begin, end, sure=counted and sure)

    def _multiply_add(self, e: Binary, flags: str) -> str | None:
        """``a * b + c`` in one call; None where there is no product."""
        minus = e.op == "sub"
        match e:
            case Binary(_, c, Binary("mul", a, b)):
                negate_product = minus
                negate_addend = False
            case Binary(_, Binary("mul", a, b), c):
                negate_product = False
                negate_addend = minus
            case _:
                return None
        lanes = max(a.dtype.lanes, b.dtype.lanes, c.dtype.lanes)
        dtype = c.dtype.with_lanes(lanes)
        t = value_type(dtype)
        x, y, z = (self._widened(self.expr(v), v.dtype, lanes) for v in (a, b, c))
        if negate_product:
            x = self.em.pure(f"fneg {t.text} {x}")
        if negate_addend:
            z = self.em.pure(f"fneg {t.text} {z}")
        alone = not (negate_product or negate_addend) and is_broadcast_alone(a, b, c)
        kept = self.em.add_to(t, x, y, z) if alone else None
        return kept or self.em.intrinsic("fmuladd", t, x, y, z, flags=flags)

    def _intrinsic(self, e: Intrinsic) -> str:
        if e.name == CALL_EXTERN:
            return self._foreign_call(e)
        lanes = max((a.dtype.lanes for a in e.args), default=1)
        args = [self._widened(self.expr(a), a.dtype, lanes) for a in e.args]
        dtype = e.args[0].dtype if e.args else e.dtype
        name = EXP_NONPOSITIVE if e.name == "exp" and is_nonpositive(e.args[0]) else e.name
        return intrinsic(self.em, name, dtype.with_lanes(lanes), args)

    def _foreign_call(self, e: Intrinsic) -> str:
        assert all(x.dtype.lanes == 1 for x in (e, *e.args)), "a foreign call on vectors"
        symbol, returns = str(e.attrs["symbol"]), str(e.attrs["returns"])
        args = [self._foreign_arg(a) for a in e.args]
        result = "void" if returns == "void" else value_type(e.dtype).text
        self.em.unit.declare(symbol, result, [kind for kind, _ in args])
        call = f"call {result} @{symbol}({', '.join(f'{kind} {value}' for kind, value in args)})"
        if result != "void":
            return self.em.effect(call)
        self.em.do(call)
        return "0"

    def _foreign_arg(self, e: PrimExpr) -> tuple[str, str]:
        """A foreign function's argument: its type and value."""
        match e:
            case Intrinsic(name, (Load() as element,)) if name == ADDRESS_OF:
                place = self.place(element.indices, 1)
                assert isinstance(place, At)
                pointer, of = self.pointers[element.buffer], memory_type(element.dtype)
                return "ptr", self.em.address(pointer, place.index, of, inbounds=False)
            case _:
                return value_type(e.dtype).text, self.expr(e)

    def _ramp(self, e: Ramp) -> str:
        t = value_type(e.dtype)
        numbers = steps_text(t)
        stride = self.em.splat(self.expr(e.stride), t)
        if isinstance(e.stride, Imm):
            numbers = steps_text(t, int(e.stride.value))
        else:
            numbers = self.em.pure(f"mul {t.text} {numbers}, {stride}")
        base = self.em.splat(self.expr(e.base), t)
        return self.em.pure(f"add {t.text} {base}, {numbers}")

    # Memory

    def prefetch(self, e: Load) -> None:
        """Bring the line of an element to the second cache; nothing happens if it is nowhere."""
        place = self.place(e.indices, 1)
        assert isinstance(place, At)
        pointer, element = self.pointers[e.buffer], memory_type(e.dtype)
        address = self.em.address(pointer, place.index, element, inbounds=False)
        self.em.hint(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 2, i32 1)")

    def place(self, indices: tuple[PrimExpr, ...], lanes: int) -> Place:
        """Where an access with this flat index goes."""
        assert len(indices) <= 1, "an access of several indices: flatten buffers first"
        if not indices:
            return At("0")
        e = indices[0]
        if lanes == 1:
            return At(self.index(e))
        ramp = as_ramp(e)
        if ramp is None:
            return Scattered(self.expr(e))
        base = self.index(ramp.base)
        match ramp.stride:
            case 0:
                return At(base)
            case 1 | -1:
                return Run(base, backwards=ramp.stride == -1)
            case int(apart) if 1 < apart <= MOST_APART:
                return Strided(base, apart)
            case int():
                return Scattered(steps_text(value_type(INT64.with_lanes(lanes)), ramp.stride), base)
            case _:
                t = value_type(INT64.with_lanes(lanes))
                stride = self.em.splat(self.index(ramp.stride), t)
                return Scattered(self.em.pure(f"mul {t.text} {steps_text(t)}, {stride}"), base)

    def _load(self, e: Load) -> str:
        lanes = e.dtype.lanes
        together = self._near(e)
        if together is not None:
            return together
        outer = (self._mask, self._mask_lanes)
        if e.predicate is not None:
            self._narrow_mask(self.expr(e.predicate), e.predicate.dtype.lanes)
        place = self.place(e.indices, lanes)
        lies_inside = e.predicate is None and is_within(e)  # registers are not read under masks
        mask = None if lies_inside else self.mask_of(1 if isinstance(place, At) else lanes)
        self._mask, self._mask_lanes = outer
        if self.checks and id(e) not in self.proven:
            self.check(e.buffer, place, lanes, mask)
        value = load(
            self.em, self.pointers[e.buffer], e.buffer.dtype.with_lanes(lanes), place, mask
        )
        if mask is not None and lanes > 1 and isinstance(place, At):
            return self._zero_off(value, e, lanes)
        return value

    def _near(self, e: Load) -> str | None:
        """Elements of a few registers' stretches loaded together; None where they may not be."""
        if self.checks or e.predicate is not None or self._mask is not None or not e.indices:
            return None
        if e.dtype.lanes == 1 or as_ramp(e.indices[0]) is not None:
            return None
        near = as_near(e.indices[0])
        if near is None or len(stretches(near.offsets)) > MOST_STRETCHES:
            return None
        base = "0" if near.base is None else self.index(near.base)
        return load_near(self.em, self.pointers[e.buffer], e.dtype, base, near.offsets)

    def _zero_off(self, value: str, e: Load, lanes: int) -> str:
        """Lanes that its predicate turned off made zero, in a value loaded once for all lanes."""
        if e.predicate is None or e.predicate.dtype.lanes == 1:
            return value
        t = value_type(e.dtype.with_lanes(lanes))
        zero = float_text(0.0, t) if t.is_float else int_text(0, t)
        on = self.expr(e.predicate)
        return self.em.pure(f"select {t.mask.text} {on}, {t.text} {value}, {t.text} {zero}")

    def check(self, buffer: Buffer, place: Place, lanes: int, mask: str | None) -> None:
        """Leave the kernel if the access is outside the buffer."""
        for condition in new_conditions(self.em, place, lanes, self.size(buffer), mask):
            self.require(condition, OUT_OF_BOUNDS)

    def require(self, condition: str, code: int) -> None:
        """Leave the function with a code unless a bit is set."""
        bad, good = self.em.new_label("bad"), self.em.new_label("good")
        self.em.branch_if(condition, good, bad)
        self.em.label(bad)
        mark = self.em.mark()
        self.fail(str(code))
        self.em.forget(mark)
        self.em.label(good)

    def size(self, buffer: Buffer) -> str:
        """How many elements a buffer spans: none where an extent is negative."""
        if buffer.strides is None:
            total = "1"
            for extent in buffer.shape:
                count = self.index(extent)
                if count[0] == "%" and not self.is_nonnegative(extent):
                    some = self.em.pure(f"icmp sgt i64 {count}, 0")
                    count = self.em.pure(f"select i1 {some}, i64 {count}, i64 0")
                total = self.em.mul(total, count, "")
            return total
        last = "1"
        for extent, stride in zip(buffer.shape, buffer.strides, strict=True):
            steps = self.em.add(self.index(extent), "-1", "")
            last = self.em.add(last, self.em.mul(steps, self.index(stride), ""), "")
        return last

    # Select

    def _select(self, e: Select) -> str:
        dtype = e.then.dtype
        lanes = max(dtype.lanes, e.orelse.dtype.lanes, e.condition.dtype.lanes)
        result = dtype.with_lanes(lanes)
        t = value_type(result)
        condition = e.condition.value if isinstance(e.condition, Broadcast) else e.condition
        wide = condition.dtype.lanes
        bit = self.expr(condition)
        lazy = _loads_more(e, condition)
        if lazy and wide == 1:
            return self._branch(bit, e, result)
        mask, mask_lanes = self._mask, self._mask_lanes
        if lazy:
            self._narrow_mask(bit, wide)
        a = self._widened(self.expr(e.then), e.then.dtype, lanes)
        if lazy:
            self._mask, self._mask_lanes = mask, mask_lanes
            bits = value_type(condition.dtype)
            self._narrow_mask(self.em.pure(f"xor {bits.text} {bit}, {int_text(1, bits)}"), wide)
        b = self._widened(self.expr(e.orelse), e.orelse.dtype, lanes)
        self._mask, self._mask_lanes = mask, mask_lanes
        selector = t.mask.text if wide > 1 else "i1"
        return self.em.pure(f"select {selector} {bit}, {t.text} {a}, {t.text} {b}")

    def _branch(self, bit: str, e: Select, dtype: DType) -> str:
        em, t = self.em, value_type(dtype)
        then, orelse, after = em.new_label("then"), em.new_label("else"), em.new_label("joined")
        em.branch_if(bit, then, orelse)
        ends: list[tuple[str, str]] = []
        for label, branch in ((then, e.then), (orelse, e.orelse)):
            em.label(label)
            mark = em.mark()
            value = self._widened(self.expr(branch), branch.dtype, dtype.lanes)
            em.forget(mark)
            ends.append((value, em.block))
            em.branch(after)
        em.label(after)
        (a, a_end), (b, b_end) = ends
        return em.effect(f"phi {t.text} [ {a}, %{a_end} ], [ {b}, %{b_end} ]")


def _loads_more(e: Select, condition: PrimExpr) -> bool:
    """Whether a branch loads what its condition has not loaded already, in any case."""
    told = isinstance(condition, Compare) and not leaves(condition).selects
    done = leaves(condition).loads if told else ()
    return not {*leaves(e.then).loads, *leaves(e.orelse).loads}.issubset(done)
