"""FuseAttention: what exporters write for attention becomes one `nn.attention`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from unity.errors import UnityError
from unity.ir.attrs import Attrs
from unity.ir.dims import Dim, equal
from unity.ir.dtype import Array
from unity.ir.graph import Call, Constant, Expr, Function, Op, ShapeValue, Var
from unity.ir.module import IRModule
from unity.ir.types import TensorType, Type

from ...passes import Context, Pass, map_functions
from ..rewriter import BodyRewriter
from ..slices import begin_of
from ..uses import count_uses
from .attention_operands import (
    Operand,
    axes_from,
    equal_dims,
    first_rows,
    rank_of,
    repeated,
    shape_of,
    sliced,
)
from .causal_mask import Scores, causal_bias, causal_choice, terms


@dataclass(frozen=True, slots=True)
class FuseAttention(Pass):
    """``softmax(q k^T * scale + bias) v`` in any of its usual forms becomes ``nn.attention``.

    The scale may be on either operand or on the product, as a factor or a divisor; a mask may be
    added or select; transposed operands, and parts of one product, are read where they are.

    >>> from unity.script import parse, print_module
    >>> before = parse('''
    ... n = dim("n")
    ... @script.function
    ... def main(q: f32[Tensor, 1, n, 4, 8], k: f32[Tensor, 1, n, 4, 8], v: f32[Tensor, 1, 4, n, 8],
    ...          mask: f32[Tensor, 1, 1, 1, n]) -> f32[Tensor, 1, n, 32]:
    ...     s = R.matmul(R.permute_dims(q, (0, 2, 1, 3)), R.permute_dims(k, (0, 2, 3, 1)))
    ...     p = R.nn.softmax(R.add(R.divide(s, 4.0), mask), axis=-1)
    ...     y = R.permute_dims(R.matmul(p, v), (0, 2, 1, 3))
    ...     return R.reshape(y, (1, n, 32))
    ... ''')
    >>> from unity.transform.graph import EliminateDeadCode
    >>> after = EliminateDeadCode()(FuseAttention()(before, Context()), Context())
    >>> print(print_module(after), end="")  # doctest: +NORMALIZE_WHITESPACE
    n = dim("n")
    <BLANKLINE>
    <BLANKLINE>
    @script.function
    def main(q: f32[Tensor, 1, n, 4, 8], k: f32[Tensor, 1, n, 4, 8], v: f32[Tensor, 1, 4, n, 8],
             mask: f32[Tensor, 1, 1, 1, n]) -> f32[Tensor, 1, n, 32]:
        y = R.nn.attention(q, k, v, mask, scale=0.25,
                           layouts=("BLHD", "BLHD", "BHLD", "BLHD"))
        reshape = R.reshape(y, (1, n, 32))
        return reshape
    """

    def __call__(self, module: IRModule, ctx: Context) -> IRModule:
        """Each function by itself."""

        def fuse(f: Function) -> Function:
            return _Fuser(module, count_uses(f.body)).function(f)

        return map_functions(module, fuse)


FLOAT32_NORMAL = 2.0**-126
"""The least normal float32: a scale whose reciprocal is beyond it is left a division."""


@dataclass(slots=True)
class _Scores:
    """What is known of the scores, gathered from the softmax backwards."""

    scale: float = 1.0
    bias: Expr | None = None
    mask: Expr | None = None
    fill: float = -1e9
    zero_unseen: bool = False
    causal: str | None = None


class _Fuser(BodyRewriter):
    """Carries how often each variable is used: what others need is not taken into an attention."""

    def __init__(self, module: IRModule, uses: Counter[Var]) -> None:
        super().__init__(module)
        self.uses = uses

    def rewrite(self, var: Var, value: Expr) -> Expr:
        match value:
            case Call(Op("matmul"), (Var() as weights, v)) if value.attrs["out_dtype"] is None:
                return self.attention(weights, v, var) or value
            case Call(Op("permute_dims"), (Var() as x,)):
                return self.reordered(x, value) or value
            case _:
                return value

    def attention(self, weights: Var, v: Expr, result: Var) -> Expr | None:
        """The attention that a product with softmax's weights is; None if it is none."""
        softmax = self.only_use(weights)
        guard: Expr | None = None
        if softmax is not None and softmax.callee == Op("where"):
            guard, zero, kept = softmax.args
            softmax = self.only_use(kept) if _number(zero) == 0 else None
        rank = rank_of(weights)
        if softmax is None or softmax.callee != Op("nn.softmax") or rank not in (3, 4):
            return None
        if softmax.attrs["axis"] not in (-1, rank - 1):
            return None
        scores = _Scores(zero_unseen=guard is not None)
        product = self.product(softmax.args[0], scores)
        if guard is not None and not self.tells_unseen(guard, scores, weights):
            return None
        if product is None or any(rank_of(x) != rank for x in (*product.args, v)):
            return None
        batch = "BH"[4 - rank :]
        q = self.operand(product.args[0], f"{batch}LD", scores)
        k = self.operand(product.args[1], f"{batch}DL", scores, keys=True)
        value = self.operand(v, f"{batch}LD", None, keys=True)
        return self.call(q, k, value, scores, result)

    def tells_unseen(self, guard: Expr, scores: _Scores, weights: Var) -> bool:
        """Whether it holds for rows that a bias leaves nothing of, as ONNX's Attention asks."""
        if isinstance(guard, Constant) and isinstance(scores.bias, Constant):
            added, all_of = np.asarray(scores.bias.data, np.float64), shape_of(weights)
            if all_of is None or not added.ndim or not equal(all_of[-1], added.shape[-1]):
                return False
            unseen = added.max(axis=-1, keepdims=True, initial=-np.inf) == -np.inf
            return np.array_equal(unseen, guard.data)
        found = self.values.get(guard) if isinstance(guard, Var) else None
        if not isinstance(found, Call) or found.callee != Op("equal"):
            return False
        most, lowest = found.args
        peak = self.values.get(most) if isinstance(most, Var) else None
        if not isinstance(peak, Call) or peak.callee != Op("max") or _number(lowest) != -np.inf:
            return False
        (bias,), rank = peak.args, rank_of(peak.args[0])
        if rank is None or peak.attrs["axis"] not in ((-1,), (rank - 1,)):
            return False
        whole, row, made = shape_of(bias), shape_of(weights), self.infer(peak)
        kept = isinstance(made, TensorType) and made.ndim == rank
        wide = whole is not None and row is not None and equal(whole[-1], row[-1])
        return kept and wide and scores.mask is None and bias is scores.bias

    def product(self, x: Expr, scores: _Scores) -> Call | None:
        """The product ``q k^T`` behind the scores; what is done to it is noted."""
        while (call := self.only_use(x)) is not None and isinstance(call.callee, Op):
            name, plain = call.callee.name, scores.scale == 1.0
            first = scores.bias is None and scores.mask is None
            if name == "matmul":
                return call if call.attrs["out_dtype"] is None else None
            if name in ("multiply", "divide"):
                inner = self.scaled(call, scores)
                if inner is None:
                    return None
                x = inner
            elif name == "add" and plain and first:
                a, b = call.args
                x, scores.bias = (a, b) if self.is_scores(a) else (b, a)
                if not _same_shape(x, self.infer(call)):
                    return None
            elif name == "where" and plain and scores.mask is None:
                found = self.selected(call, scores)
                if found is None:
                    return None
                x = found
            else:
                return None
        return None

    def is_scores(self, x: Expr) -> bool:
        """Whether an operand of an addition is the scores: a product, perhaps scaled or masked."""
        while (call := self.only_use(x)) is not None and isinstance(call.callee, Op):
            name = call.callee.name
            if name == "matmul":
                return True
            if name in ("multiply", "divide"):
                x = call.args[1] if _number(call.args[0]) is not None else call.args[0]
            elif name == "where":
                x = call.args[2] if _number(call.args[1]) is not None else call.args[1]
            else:
                return False
        return False

    def scaled(self, call: Call, scores: _Scores) -> Expr | None:
        """What is multiplied by, or divided by, a number."""
        a, b = call.args
        number = _number(b)
        if number is None and call.callee == Op("multiply"):
            a, b, number = b, a, _number(a)
        if number is None or not _same_shape(a, self.infer(call)):
            return None
        if call.callee == Op("divide"):
            if number == 0:
                return None
            number = 1 / number
            if not FLOAT32_NORMAL <= abs(scores.scale * number) < 1 / FLOAT32_NORMAL:
                return None
        scores.scale *= number
        return a

    def selected(self, call: Call, scores: _Scores) -> Expr | None:
        """What a selection masks: a number takes its place where the mask says."""
        mask, then, other = call.args
        fill = _number(other)
        x = then
        if fill is None:
            fill, x = _number(then), other
            if fill is not None:
                mask = self.emit(Call(Op("logical_not"), (mask,), span=call.span), "keep")
        if fill is None or not _same_shape(x, self.infer(call)):
            return None
        scores.mask, scores.fill = mask, fill
        return x

    def operand(
        self, x: Expr, letters: str, scores: _Scores | None, *, keys: bool = False
    ) -> Operand:
        """A factor of a product, taken back to before it was scaled and transposed.

        One that holds keys or values also to before it was cut short and its heads were repeated.
        """
        rows: Dim | None = None
        group = 1
        while isinstance(x, Var):
            call = self.values.get(x)
            if not isinstance(call, Call):
                break
            match call:
                case Call(Op("permute_dims"), (base,)):
                    axes = axes_from(call, len(letters))
                    found = [""] * len(letters)
                    for letter, axis in zip(letters, axes, strict=True):
                        found[axis] = letter
                    x, letters = base, "".join(found)
                case Call(Op("multiply" | "divide")) if scores is not None and self.uses[x] == 1:
                    inner = self.scaled(call, scores)
                    if inner is None:
                        break
                    x = inner
                case Call(Op("strided_slice"), (base,)) if keys:
                    count = first_rows(call, x, letters)
                    if count is None:
                        break
                    rows, x = count if rows is None else rows, base
                case Call(Op("reshape"), (Var() as wide, _)) if keys:
                    at = letters.index("H")
                    narrow = repeated(x, wide, at, self.values) if group == 1 else None
                    if narrow is None:
                        break
                    x, group = narrow
                case _:
                    break
        if len(letters) == 3:
            x = self.emit(Call(Op("expand_dims"), (x,), Attrs(axis=(0,))), "batch")
            return Operand(x, f"B{letters}", rows=rows, group=group)
        part = None if rows is not None or group > 1 else self.part(x, letters)
        return part or Operand(x, letters, rows=rows, group=group)

    def part(self, x: Expr, letters: str) -> Operand | None:
        """The whole that an operand is some heads of: one product gives q, k and v."""
        view = self.values.get(x) if isinstance(x, Var) else None
        if isinstance(view, Call) and view.callee == Op("strided_slice"):
            base, axis = view.args[0], letters.index("H")
            shape = shape_of(base)
            begin = None if shape is None else begin_of(view, axis, shape)
            return None if begin is None else Operand(base, letters, begin)
        if letters != "BLHD" or not isinstance(view, Call) or view.callee != Op("reshape"):
            return None
        found = sliced(view.args[0], self.values)
        shape = shape_of(x)
        if found is None or shape is None:
            return None
        whole, begin = found
        width, (batch, length, heads, size) = shape_of(whole), shape
        if width is None or len(width) != 3 or not isinstance(width[2], int):
            return None
        if not isinstance(size, int) or not isinstance(heads, int) or size == 0:
            return None
        if begin % size or width[2] % size or not equal(batch, width[0]):
            return None
        dims = ShapeValue((batch, length, width[2] // size, size))
        packed = self.emit(Call(Op("reshape"), (whole, dims), span=view.span), "heads")
        return Operand(packed, letters, begin // size)

    def call(self, q: Operand, k: Operand, v: Operand, scores: _Scores, result: Var) -> Expr | None:
        """The call, if the operands fit."""
        rank = rank_of(result)
        shape = shape_of(result)
        if shape is None or rank is None:
            return None
        heads: Dim = shape[1] if rank == 4 else shape[0]
        count: int | None = None
        shared: int | None = None
        if q.first or k.first or v.first or len({str(x.dims()["H"]) for x in (q, k, v)}) > 1:
            if not isinstance(heads, int):
                return None
            count = heads
            if equal(k.dims()["H"], 1) and equal(v.dims()["H"], 1):
                shared = 1
            elif k.group > 1:
                shared = heads // k.group
        keys = k.used()
        if not equal(keys, v.used()) or k.group != v.group:
            return None
        layouts = (q.layout, k.layout, v.layout, "BHLD")
        args = [q.value, k.value, v.value]
        self.note_causal(scores, q.dims()["L"], keys)
        if scores.bias is None:
            scores.zero_unseen = False
        if scores.mask is not None and scores.bias is None:
            scores.bias = Constant(_zero(result))
        args += [x for x in (scores.bias, scores.mask) if x is not None]
        full = Attrs(
            scale=scores.scale,
            fill=scores.fill,
            layouts=layouts,
            heads=count,
            kv_heads=shared,
            first=(q.first, k.first, v.first),
            keys=None if k.rows is None and v.rows is None else keys,
            zero_unseen=scores.zero_unseen,
            causal_mask=scores.causal,
        )
        call = Call(Op("nn.attention"), tuple(args), full, result.span)
        try:
            found = self.infer(call)
        except UnityError:  # batches that broadcast, say
            return None
        if rank == 4:
            return call if _equal_types(found, result.type) else None
        squeezed = Call(Op("squeeze"), (self.emit(call, "attention"),), Attrs(axis=(0,)))
        return squeezed if _equal_types(self.infer(squeezed), result.type) else None

    def note_causal(self, scores: _Scores, queries: Dim, keys: Dim) -> None:
        """What is added to scores, or selects them, without zeros and masks that are causal."""

        def told(word: str | None) -> bool:
            if word is None or scores.causal not in (None, word):
                return False
            scores.causal = word
            return True

        added = [] if scores.bias is None else terms(scores.bias, self.values)
        added = [x for x in added if not self.is_zero(x)]
        alone = len(added) + (scores.mask is not None) <= 1
        given = Scores(queries, keys, scores.zero_unseen, alone, self.values)
        if scores.mask is not None and told(causal_choice(scores.mask, scores.fill, given)):
            scores.mask = None
        if scores.bias is None:
            return
        left = [x for x in added if not told(causal_bias(x, given))]
        if left != [scores.bias]:
            scores.bias = self.sum_of(left)

    def sum_of(self, added: list[Expr]) -> Expr | None:
        """The sum of some expressions."""
        found: Expr | None = None
        for x in added:
            found = x if found is None else self.emit(Call(Op("add"), (found, x)), "bias")
        return found

    def is_zero(self, bias: Expr) -> bool:
        """Whether what is added to scores is known to be 0 everywhere."""
        if isinstance(bias, Constant):
            return not np.any(bias.data)
        match self.values.get(bias) if isinstance(bias, Var) else None:
            case Call(Op("zeros")):
                return True
            case Call(Op("full"), (_, value)):
                return _number(value) == 0
            case _:
                return False

    def reordered(self, x: Var, call: Call) -> Expr | None:
        """A transposed result of an attention: the attention writes it in that order."""
        if self.uses[x] != 1:
            return None
        made, rank = self.values.get(x), rank_of(x)
        squeezed = isinstance(made, Call) and made.callee == Op("squeeze")
        if squeezed and isinstance(made, Call) and made.attrs["axis"] == (0,):
            inner = made.args[0]
            made = self.values.get(inner) if isinstance(inner, Var) else None
        if not isinstance(made, Call) or made.callee != Op("nn.attention") or rank is None:
            return None
        layouts = made.attrs["layouts"]
        assert isinstance(layouts, tuple)
        old = str(layouts[3])
        if squeezed and old[0] != "B":
            return None
        axes = axes_from(call, rank)
        new = "B" + "".join(old[a + 1] for a in axes) if squeezed else "".join(old[a] for a in axes)
        moved = replace(made, attrs=made.attrs.with_(layouts=(*layouts[:3], new)))
        if not squeezed:
            return moved
        return Call(Op("squeeze"), (self.emit(moved, "attention"),), Attrs(axis=(0,)))

    def only_use(self, x: Expr) -> Call | None:
        """The call that made a variable used nowhere else."""
        made = self.values.get(x) if isinstance(x, Var) and self.uses[x] == 1 else None
        return made if isinstance(made, Call) else None


def _same_shape(x: Expr, kind: Type) -> bool:
    """Whether an operand has the shape of the result, so that nothing else broadcasts it."""
    shape = shape_of(x)
    return shape is not None and isinstance(kind, TensorType) and equal_dims(shape, kind.shape)


def _equal_types(a: Type, b: Type) -> bool:
    if not isinstance(a, TensorType) or not isinstance(b, TensorType) or a.dtype != b.dtype:
        return False
    return isinstance(a.shape, tuple) and equal_dims(a.shape, b.shape)


def _number(x: Expr) -> float | None:
    """The value of a constant of one element."""
    if not isinstance(x, Constant) or x.data.size != 1 or x.data.dtype.kind != "f":
        return None
    return float(x.data.reshape(()).astype(np.float64))


def _zero(like: Var) -> Array:
    assert isinstance(like.type, TensorType)
    assert like.type.dtype is not None
    return np.zeros((), like.type.dtype.numpy)
