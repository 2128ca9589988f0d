"""The operators of ``R``, made by `python -m unity.script.stubs`."""

from collections.abc import Sequence
from typing import TypeAlias

from unity.ir.dims import SymDim
from unity.ir.dtype import DType

from .annotations import Operand, Tensor

Dim: TypeAlias = SymDim | int

def abs(x: Operand) -> Tensor:
    """Absolute value; the least signed integer stays as it is.

    Elementwise: `x` is a tensor of any shape, of an integer or a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def acos(x: Operand) -> Tensor:
    """The inverse cosine.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def acosh(x: Operand) -> Tensor:
    """The inverse hyperbolic cosine.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def add(x1: Operand, x2: Operand) -> Tensor:
    """``x1 + x2``; integers wrap.

    Both tensors broadcast, as numpy's do, and have one dtype, of an integer or a float dtype;
    others are refused. The result has it, too.
    """

def all(x: Operand, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """Whether every element is true, over `axis` (None: all); `keepdims` leaves the reduced axes as 1.

    Args:
        axis: which axis or axes, negative ones from the end (an int or a tuple of ints;
            None).
        keepdims: whether reduced axes stay, of extent 1 (True or False; False).
    """

def any(x: Operand, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """Whether any element is true, over `axis` (None: all); `keepdims` leaves the reduced axes as 1.

    Args:
        axis: which axis or axes, negative ones from the end (an int or a tuple of ints;
            None).
        keepdims: whether reduced axes stay, of extent 1 (True or False; False).
    """

def arange(
    start: float | SymDim,
    end: float | SymDim | None = None,
    step: float | SymDim = 1,
    dtype: str | DType | None = None,
) -> Tensor:
    """``start, start + step, ...`` up to but not including `end`; ``arange(n)`` starts at 0.

    Bounds may be dims: the length is ``max(0, ceil((end - start) / step))``. The dtype is
    int64, or float32 if a bound is a float (R.arange).

    Args:
        start: where it begins; its end, where there is no other (a number or a dim).
        end: where it ends; it is not reached. None: at `start`, and it begins at 0 (a
            number or a dim; None).
        step: how far apart elements are, not 0 (a number or a dim; 1).
        dtype: the elements of the result; None: int64, or float32 if a bound is a float (a
            dtype; None).
    """

def argmax(x: Operand, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the largest element is, as int64: the first of equals, NaN above all; of nothing there is none, an error as in numpy (R.argmax).

    Args:
        axis: which axis or axes, negative ones from the end (an int; None).
        keepdims: whether reduced axes stay, of extent 1 (True or False; False).
    """

def argmin(x: Operand, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element is, as int64: the first of equals, NaN below all; of nothing there is none, an error as in numpy (R.argmin).

    Args:
        axis: which axis or axes, negative ones from the end (an int; None).
        keepdims: whether reduced axes stay, of extent 1 (True or False; False).
    """

def argsort(
    x: Operand,
    axis: int = -1,
    descending: bool = False,
    dtype: str | DType = "int64",
) -> Tensor:
    """The indices that sort each row along `axis`, equals in their order (R.argsort).

    Args:
        axis: which axis or axes, negative ones from the end (an int; -1).
        descending: whether the greatest come first (True or False; False).
        dtype: that of the indices (a dtype; 'int64').
    """

def asin(x: Operand) -> Tensor:
    """The inverse sine.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def asinh(x: Operand) -> Tensor:
    """The inverse hyperbolic sine.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def astype(x: Operand, dtype: str | DType) -> Tensor:
    """`x` as another dtype, as numpy does: floats truncate to integers, what is not 0 is True.

    Args:
        dtype: the elements of the result (a dtype).
    """

def atan(x: Operand) -> Tensor:
    """The inverse tangent.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def atan2(x1: Operand, x2: Operand) -> Tensor:
    """The angle of the point (x2, x1), between -pi and pi: of ``x1 / x2`` by both signs (R.atan2, torch.atan2).

    Both tensors broadcast, as numpy's do, and have one dtype, of a float dtype;
    others are refused. The result has it, too.
    """

def atanh(x: Operand) -> Tensor:
    """The inverse hyperbolic tangent.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def bitcast(x: Operand, dtype: str | DType) -> Tensor:
    """The bits of `x` as another dtype of as many.

    Args:
        dtype: the elements of the result (a dtype).
    """

def bitwise_and(x1: Operand, x2: Operand) -> Tensor:
    """Both bits set, on integers.

    Both tensors broadcast, as numpy's do, and have one dtype, of an integer dtype;
    others are refused. The result has it, too.
    """

def bitwise_not(x: Operand) -> Tensor:
    """Every bit flipped, on integers.

    Elementwise: `x` is a tensor of any shape, of an integer dtype; another is
    refused. The result has its shape and its dtype.
    """

def bitwise_or(x1: Operand, x2: Operand) -> Tensor:
    """Either bit set, on integers.

    Both tensors broadcast, as numpy's do, and have one dtype, of an integer dtype;
    others are refused. The result has it, too.
    """

def bitwise_xor(x1: Operand, x2: Operand) -> Tensor:
    """Bits that differ, on integers.

    Both tensors broadcast, as numpy's do, and have one dtype, of an integer dtype;
    others are refused. The result has it, too.
    """

def blackman_window(
    window_size: Dim,
    periodic: bool = True,
    dtype: str | DType = "float32",
) -> Tensor:
    """``0.42 - 0.5 * cos(2 pi i / n) + 0.08 * cos(4 pi i / n)``: a vector as `hamming_window`, of a float `dtype` (torch.blackman_window).

    Args:
        window_size: how many elements (a dim).
        periodic: whether the window goes on from its end at its begin, else it is symmetric
            (True or False; True).
        dtype: the elements of the result (a dtype; 'float32').
    """

def broadcast_to(x: Operand, shape: Sequence[Dim | Tensor] | Tensor) -> Tensor:
    """Repeated along axes of extent 1 and new leading axes (R.broadcast_to, numpy's rules)."""

def bucketize(
    x: Operand,
    boundaries: Operand,
    out_int32: bool = False,
    right: bool = False,
) -> Tensor:
    """How many of the sorted `boundaries` are less than each element, an int64 or int32.

    With `right` those that are equal count as well. NaN is above every number and
    equal to NaN (R.bucketize, np.searchsorted; torch.bucketize counts boundaries of NaN as
    less than NaN).

    Args:
        out_int32: whether indices are int32, else int64 (True or False; False).
        right: whether boundaries equal to an element count (True or False; False).
    """

def ceil(x: Operand) -> Tensor:
    """Rounded up.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def clip(x: Operand, min: float | None = None, max: float | None = None) -> Tensor:
    """``min(max(x, min), max)``; None does not bind, NaN stays NaN (R.clip, ONNX Clip).

    Elementwise: `x` is a tensor of any shape, of an integer or a float dtype; another is
    refused. The result has its shape and its dtype.

    Args:
        min: the lower limit; None: there is none (a number; None).
        max: the upper limit; None: there is none (a number; None).
    """

def collapse_sum_like(x: Operand, like: Operand) -> Tensor:
    """`R.collapse_sum_to` the shape of `like`, another tensor of numbers (R.collapse_sum_like)."""

def collapse_sum_to(x: Operand, shape: Sequence[Dim | Tensor] | Tensor) -> Tensor:
    """x summed to a shape that broadcasts to x's: what undoes broadcasting in a gradient (R.collapse_sum_to)."""

def concat(tensors: Sequence[Operand] | Tensor, axis: int = 0) -> Tensor:
    """Tensors one behind the other along `axis` (R.concat, ONNX Concat).

    Args:
        axis: which axis or axes, negative ones from the end (an int; 0).
    """

def cos(x: Operand) -> Tensor:
    """The cosine.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def cosh(x: Operand) -> Tensor:
    """The hyperbolic cosine.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def cumprod(
    x: Operand,
    axis: int | None = None,
    dtype: str | DType | None = None,
    exclusive: bool = False,
    reverse: bool = False,
) -> Tensor:
    """Running products along `axis`; of the flattened tensor by default (R.cumprod, CumProd).

    `exclusive` leaves each element itself out, `reverse` runs from the end. The dtype is
    `dtype`, else x's (int64 of bool). Half-width floats accumulate in float32.

    Args:
        axis: which axis or axes, negative ones from the end (an int; None).
        dtype: the elements of the result; None: the operand's (a dtype; None).
        exclusive: whether an element is left out of its own result (True or False; False).
        reverse: whether it goes from the end (True or False; False).
    """

def cumsum(
    x: Operand,
    axis: int | None = None,
    dtype: str | DType | None = None,
    exclusive: bool = False,
    reverse: bool = False,
) -> Tensor:
    """Running sums along `axis`; of the flattened tensor by default (R.cumsum, ONNX CumSum).

    `exclusive` leaves each element itself out, `reverse` runs from the end. The dtype is
    `dtype`, else x's (int64 of bool). Half-width floats accumulate in float32.

    Args:
        axis: which axis or axes, negative ones from the end (an int; None).
        dtype: the elements of the result; None: the operand's (a dtype; None).
        exclusive: whether an element is left out of its own result (True or False; False).
        reverse: whether it goes from the end (True or False; False).
    """

def depth_to_space(x: Operand, block_size: int, mode: str = "DCR") -> Tensor:
    """``(n, c * b * b, h, w)`` to ``(n, c, h * b, w * b)``: ONNX DepthToSpace; mode CRD is R.nn.pixel_shuffle.

    Args:
        block_size: the side of a block of pixels (an int).
        mode: 'DCR' or 'CRD': in which order channels hold the pixels of blocks (text;
            'DCR').
    """

def dequantize(
    x: Operand,
    scale: Operand,
    zero_point: Operand,
    axis: int = -1,
    out_dtype: str | DType = "float32",
    block: int = 0,
) -> Tensor:
    """``scale * (x - zero_point)`` in `out_dtype`; shape of x (R.dequantize).

    `x` holds integers of at most 32 bits; `scale` (floats) and `zero_point` (integers) are
    scalars or vectors of ``x.shape[axis]``, or, with `block`, tensors like x that have one for
    each block of so many along `axis`. The difference wraps in int32; the product is of
    `scale`'s dtype, of float32 at least (ONNX DequantizeLinear).

    Args:
        axis: which axis or axes, negative ones from the end (an int; -1).
        out_dtype: the floats of the result (a dtype; 'float32').
        block: how many elements along the axis share a scale; 0: those of one index (an
            int; 0).
    """

def dims(values: Dim | Sequence[Dim], dtype: str | DType = "int64") -> Tensor:
    """A tensor of sizes: rank 0 of one dim, rank 1 of a tuple. What ``shape_to_tensor`` of known dims becomes when it must be computed.

    Args:
        dtype: the elements of the result (a dtype; 'int64').
    """

def divide(x1: Operand, x2: Operand) -> Tensor:
    """``x1 / x2``; integers are truncated towards zero (C, ONNX Div). By 0 they give 0, or an error if compiled with ``check_bounds=True``; so do all divisions and remainders.

    Both tensors broadcast, as numpy's do, and have one dtype, of an integer or a float dtype;
    others are refused. The result has it, too.
    """

def dynamic_strided_slice(x: Operand, begin: Operand, end: Operand, strides: Operand) -> Tensor:
    """``x[begin[0]:end[0]:strides[0], ...]`` by Python's rules, of bounds that are tensors.

    `begin`, `end` and `strides` are integers, ``(rank,)`` each, one for each axis of `x`, whose
    sizes must be known, if only as symbols. The result has its rank and fresh symbols for its
    sizes. A stride of 0 stops the run (R.dynamic_strided_slice, ONNX Slice).
    """

def einsum(operands: Sequence[Operand] | Tensor, subscripts: str) -> Tensor:
    """The sum of products that an equation says, ``R.einsum((a, b), "bij,bjk->bik")``.

    A letter stands for an axis, ``...`` for leading ones; letters that the result lacks are
    summed over, and without an arrow it has those that stand once, sorted. Several operands
    are multiplied from left to right, by matrix products (R.einsum, numpy, ONNX Einsum).

    Args:
        subscripts: which letter is which axis, 'bij,bjk->bik' (text).
    """

def equal(x1: Operand, x2: Operand) -> Tensor:
    """``x1 == x2``; NaN equals nothing.

    Both tensors broadcast, as numpy's do, and have one dtype; others are refused.
    The result is bool.
    """

def erf(x: Operand) -> Tensor:
    """The error function.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def ewise_fma(x1: Operand, x2: Operand, x3: Operand) -> Tensor:
    """``x1 * x2 + x3``, rounded once or twice as the machine does it (R.ewise_fma).

    The three broadcast and have one dtype, integer or float, as the result has.
    """

def exp(x: Operand) -> Tensor:
    """``e ** x``.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def exp2(x: Operand) -> Tensor:
    """``2 ** x``.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def expand_dims(x: Operand, axis: int | Sequence[int]) -> Tensor:
    """Axes of extent 1 added; `axis` counts in the result (R.expand_dims, ONNX Unsqueeze).

    Args:
        axis: which axis or axes, negative ones from the end (an int or a tuple of ints).
    """

def expm1(x: Operand) -> Tensor:
    """``e ** x - 1``, exact near 0.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def eye(n: Dim, m: Dim | None = None, k: Dim = 0, dtype: str | DType = "float32") -> Tensor:
    """``(n, m)`` with 1 on the diagonal k (above the main one if positive), else 0 (R.eye); `m` is n by default.

    Args:
        n: how many rows (a dim).
        m: how many columns; None: as many as rows (a dim; None).
        k: which diagonal, above the main one if positive (a dim; 0).
        dtype: the elements of the result (a dtype; 'float32').
    """

def eye_like(x: Operand, k: Dim = 0, dtype: str | DType | None = None) -> Tensor:
    """`R.eye` of a matrix's shape, and of its dtype by default (R.eye_like, ONNX EyeLike).

    Args:
        k: which diagonal, above the main one if positive (a dim; 0).
        dtype: the elements of the result; None: the operand's (a dtype; None).
    """

def flatten(x: Operand) -> Tensor:
    """The elements of any shape and dtype in row-major order, as a vector (R.flatten)."""

def flip(x: Operand, axis: int | Sequence[int] | None = 0) -> Tensor:
    """The order along `axis` (one or several) reversed (R.flip).

    Args:
        axis: which axis or axes, negative ones from the end (an int or a tuple of ints or
            None; 0).
    """

def floor(x: Operand) -> Tensor:
    """Rounded down.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def floor_divide(x1: Operand, x2: Operand) -> Tensor:
    """``x1 // x2`` rounded down; an integer divided by 0 gives 0.

    Both tensors broadcast, as numpy's do, and have one dtype, of an integer or a float dtype;
    others are refused. The result has it, too.
    """

def floor_mod(x1: Operand, x2: Operand) -> Tensor:
    """The remainder with the sign of `x2` (Python's ``%``); an integer by 0 gives 0.

    Both tensors broadcast, as numpy's do, and have one dtype, of an integer or a float dtype;
    others are refused. The result has it, too.
    """

def frames(x: Operand, length: int, step: int, dilation: int = 1) -> Tensor:
    """``(..., n)`` to ``(..., frames, length)``: element k of frame f is ``x[f * step + k * dilation]``, as a convolution's windows lie (what `ConvertFrames` makes; torch.Tensor.unfold).

    Args:
        step: how far apart elements are, not 0 (an int).
        dilation: how far apart the taps of a window are, of each axis (an int; 1).
    """

def full(
    shape: Sequence[Dim | Tensor] | Tensor,
    fill_value: Operand,
    dtype: str | DType | None = None,
) -> Tensor:
    """A tensor of one value, cast to `dtype` (None: the value's own).

    Args:
        dtype: the elements of the result (a dtype; None).
    """

def full_like(x: Operand, fill_value: Operand, dtype: str | DType | None = None) -> Tensor:
    """A tensor of one value shaped like `x`, of its dtype unless one is given.

    Args:
        dtype: the elements of the result; None: the operand's (a dtype; None).
    """

def gather_elements(x: Operand, indices: Operand, axis: int = 0) -> Tensor:
    """``x[i, indices[i, j], k]`` and the like: each index picks along `axis` in its own row.

    The result has the indices' shape. Indices wrap and clamp as in take, without an error
    unless compiled with ``check_bounds=True`` (R.gather_elements, ONNX GatherElements).

    Args:
        axis: which axis or axes, negative ones from the end (an int; 0).
    """

def gather_nd(x: Operand, indices: Operand, batch_dims: int = 0) -> Tensor:
    """Slices of x at index vectors, the last axis of `indices`, after `batch_dims` equal axes.

    Indices wrap and clamp as in take, without an error unless compiled with
    ``check_bounds=True`` (R.gather_nd, ONNX GatherND).

    Args:
        batch_dims: how many axes in front are those of a batch, the same in both operands
            (an int; 0).
    """

def greater(x1: Operand, x2: Operand) -> Tensor:
    """``x1 > x2``.

    Both tensors broadcast, as numpy's do, and have one dtype, integer or float; others are refused.
    The result is bool.
    """

def greater_equal(x1: Operand, x2: Operand) -> Tensor:
    """``x1 >= x2``.

    Both tensors broadcast, as numpy's do, and have one dtype, integer or float; others are refused.
    The result is bool.
    """

def hamming_window(
    window_size: Dim,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    dtype: str | DType = "float32",
) -> Tensor:
    """``alpha - beta * cos(2 pi i / n)`` for i from 0 to n - 1, with n - 1 for n in the quotient if it is not `periodic`: a vector of `window_size` elements, n, of a float `dtype` (R.hamming_window, torch.hamming_window).

    Args:
        window_size: how many elements (a dim).
        periodic: whether the window goes on from its end at its begin, else it is symmetric
            (True or False; True).
        alpha: the constant part (a number; 0.54).
        beta: the factor of the cosine (a number; 0.46).
        dtype: the elements of the result (a dtype; 'float32').
    """

def hann_window(window_size: Dim, periodic: bool = True, dtype: str | DType = "float32") -> Tensor:
    """``0.5 - 0.5 * cos(2 pi i / n)``: a vector as `hamming_window`, of a float `dtype` (torch.hann_window).

    Args:
        window_size: how many elements (a dim).
        periodic: whether the window goes on from its end at its begin, else it is symmetric
            (True or False; True).
        dtype: the elements of the result (a dtype; 'float32').
    """

def index_put(
    x: Operand,
    indices: Sequence[Operand] | Tensor,
    values: Operand,
    accumulate: bool = False,
) -> Tensor:
    """x with ``x[indices[0], indices[1], ...] = values``, or added to with `accumulate`.

    The indices are integers that broadcast, and so do `values`, of the dtype of x, with them.
    Of several values for one place the last one stays. Indices are taken as in
    `R.scatter_nd` (R.index_put, torch's index_put).

    Args:
        accumulate: whether values are added to what is there (True or False; False).
    """

def index_tensor(x: Operand, indices: Sequence[Operand] | Tensor) -> Tensor:
    """``x[indices[0], indices[1], ...]``: index tensors broadcast together, axes behind stay.

    Indices are taken as in `R.take` (R.index_tensor, numpy's and torch's indexing).
    """

def interleave_phases(x: Operand, strides: int | Sequence[int]) -> Tensor:
    """``(n, c * s0 * s1, h, w)`` to ``(n, c, h * s0, w * s1)`` for the strides ``(s0, s1)``, over any number of spatial axes: what `ConvertTransposed` makes.

    Args:
        strides: how far apart windows are, of each axis (an int or a tuple of ints).
    """

def isfinite(x: Operand) -> Tensor:
    """Whether each element is neither NaN nor an infinity.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and is bool.
    """

def isinf(x: Operand) -> Tensor:
    """Whether each element is an infinity.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and is bool.
    """

def isnan(x: Operand) -> Tensor:
    """Whether each element is NaN.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and is bool.
    """

def item(x: Operand) -> Tensor:
    """The number in a tensor of rank 0, as a scalar of its dtype (torch.Tensor.item)."""

def kept_boxes(
    left: Operand,
    top: Operand,
    right: Operand,
    bottom: Operand,
    area: Operand,
    positive: Operand,
    active: Operand,
    shields: Operand,
    labels: Operand,
    threshold: Operand,
    most: Operand,
    counts_all: bool = False,
    inclusive: bool = True,
) -> Tensor:
    """Which boxes, in the order of their scores, no better one covers: (batch, count), bool.

    A box is kept if it is `active`, fewer than `most` (a scalar; none is -1) of its batch were,
    and it is not `positive` or overlaps none of those that shield: the kept ones that are
    `positive` and in `shields`, of the same of `labels`. Boxes overlap whose intersection has
    the `threshold`'s part of their union, or more (`inclusive`). Kept ones count that are
    positive, or all (`counts_all`). The rest, of shape (batch, count): `left`, `top`, `right`,
    `bottom` and `area` in one float dtype (greedy suppression, as ONNX NonMaxSuppression).

    Args:
        inclusive: whether a box is covered by just the threshold (True or False; True).
    """

def layout_transform(x: Operand, index_map: str, pad_value: float = 0.0) -> Tensor:
    """The same elements in another order of axes and blocks of axes.

    `index_map` says of each element where it comes: ``"n, c, h, w -> n, c // 4, h, w, c % 4"``
    gives ``(n, c / 4, h, w, 4)`` of ``(n, c, h, w)``, ``"n, c, h, w, b -> n, c * 4 + b, h, w"``
    undoes that, where the axis b has 4 elements. Each part of each axis stands once. The last
    block of an axis that is no multiple is filled up with `pad_value` (R.layout_transform,
    whose map is a function).

    Args:
        index_map: where each index comes, 'n, c, h, w -> n, c // 4, h, w, c % 4' (text).
        pad_value: what padding holds (a number; 0.0).
    """

def left_shift(x1: Operand, x2: Operand) -> Tensor:
    """``x1 << x2`` for ``0 <= x2``; shifting all bits out gives 0.

    Both tensors broadcast, as numpy's do, and have one dtype, of an integer dtype;
    others are refused. The result has it, too.
    """

def less(x1: Operand, x2: Operand) -> Tensor:
    """``x1 < x2``.

    Both tensors broadcast, as numpy's do, and have one dtype, integer or float; others are refused.
    The result is bool.
    """

def less_equal(x1: Operand, x2: Operand) -> Tensor:
    """``x1 <= x2``.

    Both tensors broadcast, as numpy's do, and have one dtype, integer or float; others are refused.
    The result is bool.
    """

def linked_tree_ensemble(
    x: Operand,
    nodes: Operand,
    roots: Operand,
    values: Operand,
    depth: int,
    join: str = "sum",
    checked: bool = False,
) -> Tensor:
    """The leaves' values of trees of any form, joined; as `tree_ensemble`, but for the nodes.

    `nodes` is ``[nodes, 4]``, which `linked_records` makes: each tells its column, threshold,
    left child, which its right one follows, and row of `values`, ``[rows, outputs]``. `roots`
    is ``[groups, trees]``. Each row takes `depth` steps in each tree.

    Args:
        depth: the extent of the new axis (an int).
    """

def log(x: Operand) -> Tensor:
    """The natural logarithm; NaN below 0.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def log10(x: Operand) -> Tensor:
    """The logarithm to base 10.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def log1p(x: Operand) -> Tensor:
    """``log(1 + x)``, exact near 0.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def log2(x: Operand) -> Tensor:
    """The logarithm to base 2.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def log_add_exp(x1: Operand, x2: Operand) -> Tensor:
    """``log(exp(x1) + exp(x2))``, the larger one taken out first (R.log_add_exp).

    Both tensors broadcast, as numpy's do, and have one dtype, of a float dtype;
    others are refused. The result has it, too.
    """

def logical_and(x1: Operand, x2: Operand) -> Tensor:
    """``x1 and x2``, on bools.

    Both tensors broadcast, as numpy's do, and have one dtype, bool;
    others are refused. The result has it, too.
    """

def logical_not(x: Operand) -> Tensor:
    """``not x``, on bool tensors.

    Elementwise: `x` is a tensor of any shape, bool; another is
    refused. The result has its shape and its dtype.
    """

def logical_or(x1: Operand, x2: Operand) -> Tensor:
    """``x1 or x2``, on bools.

    Both tensors broadcast, as numpy's do, and have one dtype, bool;
    others are refused. The result has it, too.
    """

def logical_xor(x1: Operand, x2: Operand) -> Tensor:
    """``x1 != x2``, on bools.

    Both tensors broadcast, as numpy's do, and have one dtype, bool;
    others are refused. The result has it, too.
    """

def logsumexp(
    x: Operand,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """``log(sum(exp(x)))`` over `axis` (all by default), the largest one subtracted first.

    torch.logsumexp, ONNX ReduceLogSumExp.

    Args:
        axis: which axis or axes, negative ones from the end (an int or a tuple of ints;
            None).
        keepdims: whether reduced axes stay, of extent 1 (True or False; False).
    """

def matmul(
    x1: Operand,
    x2: Operand,
    out_dtype: str | DType | None = None,
    algorithm: str | None = None,
) -> Tensor:
    """Matrix product: ``(..., m, k) x (..., k, n) -> (..., m, n)``.

    Leading axes broadcast; a vector counts as a row on the left, as a column on the right, and
    its axis is dropped (numpy.matmul, R.matmul, ONNX MatMul). float16 and bfloat16 accumulate
    in float32; integers wrap in `out_dtype`, which is the operands' dtype unless given. With
    it, uint8 and int8 may meet.

    Args:
        out_dtype: the elements of the result; None: the operands' (a dtype; None).
        algorithm: how it is computed; None leaves that to the compiler (text; None).
    """

def matmul_interleaved(
    x: Operand,
    weight: Operand,
    columns: int,
    out_dtype: str | DType | None = None,
) -> Tensor:
    """Matrix product by a matrix in panels of columns, rows in groups that lie together.

    ``(..., m, k) x (panels, k / group, width, group) -> (..., m, columns)``: the element
    ``(k, n)`` of the matrix is ``weight[n // width, k // group, n % width, k % group]``, which
    dot product instructions read as it lies (VNNI layout). Where the weight has more rows than
    x columns, x counts as zero. Sums are of `out_dtype`, by default
    the operands' dtype; floats narrower than float32 are summed in that.

    Args:
        out_dtype: the elements of the result; None: the operands' (a dtype; None).
    """

def matmul_packed(
    x: Operand,
    weight: Operand,
    columns: int,
    out_dtype: str | DType | None = None,
    chunks: int = 1,
) -> Tensor:
    """Matrix product by a matrix in panels of columns, each contiguous.

    x ``(..., m, k)`` or ``(k,)``, weight ``(..., p, k, w)``, result ``(..., m, columns)``:
    column `n` of the matrix is column ``n % w`` of panel ``n // w``; those from `columns` on
    are not used. With `chunks`, the columns are as many chunks of equal width, and chunk `c`
    has part `c` of each panel: what is said of columns holds within a chunk. Batch axes,
    dtypes and `out_dtype` as in matmul; a float32 or float64 x takes int8 and uint8, too.

    Args:
        out_dtype: the elements of the result; None: the operands' (a dtype; None).
    """

def matmul_words(
    x: Operand,
    words: Operand,
    scale: Operand,
    shift: Operand,
    columns: int,
    bits: int = 4,
) -> Tensor:
    """Matrix product by a matrix of integers of few bits, scaled by blocks as it is read.

    x ``(..., k)``; words ``(p, k / c, w)`` of uint32, each holding `c` rows of a column in
    `bits` bits each, the first one lowest, in panels of `w` columns; scale and shift
    ``(p, blocks, w)`` of equal blocks of rows; result ``(..., columns)``: an element of the
    matrix is ``scale * integer + shift`` (ONNX DequantizeLinear of blocks, the shift being
    ``-scale * zero_point``).
    """

def max(x: Operand, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The largest element over `axis` (None: all); `keepdims` leaves the reduced axes as 1; NaN if there is one, the least value if there is none.

    Args:
        axis: which axis or axes, negative ones from the end (an int or a tuple of ints;
            None).
        keepdims: whether reduced axes stay, of extent 1 (True or False; False).
    """

def maximum(x1: Operand, x2: Operand) -> Tensor:
    """The larger; NaN if either is NaN.

    Both tensors broadcast, as numpy's do, and have one dtype, of an integer or a float dtype;
    others are refused. The result has it, too.
    """

def mean(x: Operand, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The mean over `axis` (None: all); `keepdims` leaves the reduced axes as 1; NaN of nothing; of integers a float64, as np.mean.

    Args:
        axis: which axis or axes, negative ones from the end (an int or a tuple of ints;
            None).
        keepdims: whether reduced axes stay, of extent 1 (True or False; False).
    """

def median(x: Operand, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The middle element over `axis`, the lower one of two (R.median, torch.median).

    Where there is a NaN, the first of them. Over an axis without elements it is an error.
    `axis` is an int: ``(values, indices)``, the indices int64 along that axis; or several
    axes, or None for all of them: the values alone.

    Args:
        axis: which axis or axes, negative ones from the end (an int or a tuple of ints;
            None).
        keepdims: whether reduced axes stay, of extent 1 (True or False; False).
    """

def meshgrid(tensors: Sequence[Operand] | Tensor, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinates of a grid: of vectors of n and m, two tensors ``(n, m)``, each repeating one.

    With `indexing` "xy" the first two axes change places (R.meshgrid, numpy, torch).

    Args:
        indexing: 'ij', or 'xy', with the first two axes of the results the other way round
            (text; 'ij').
    """

def min(x: Operand, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The smallest element over `axis` (None: all); `keepdims` leaves the reduced axes as 1; NaN if there is one, the greatest value if there is none.

    Args:
        axis: which axis or axes, negative ones from the end (an int or a tuple of ints;
            None).
        keepdims: whether reduced axes stay, of extent 1 (True or False; False).
    """

def minimum(x1: Operand, x2: Operand) -> Tensor:
    """The smaller; NaN if either is NaN.

    Both tensors broadcast, as numpy's do, and have one dtype, of an integer or a float dtype;
    others are refused. The result has it, too.
    """

def mod(x1: Operand, x2: Operand) -> Tensor:
    """The remainder with the sign of `x1` (C's ``%``, fmod); an integer by 0 gives 0.

    Both tensors broadcast, as numpy's do, and have one dtype, of an integer or a float dtype;
    others are refused. The result has it, too.
    """

def multinomial_from_uniform(
    prob: Operand,
    uniform_sample: Operand,
    sample_indices: Operand,
    dtype: str | DType = "int64",
) -> Tensor:
    """Classes drawn by uniform numbers: the first whose summed probability is above each.

    Of `prob` ``(batch, classes)``, `uniform_sample` ``(n, 1)`` in [0, 1) and the row of
    `prob` for each, `sample_indices` ``(n, 1)`` as in `R.take`; gives ``(n, 1)``
    (R.multinomial_from_uniform).

    Args:
        dtype: the elements of the result (a dtype; 'int64').
    """

def multiply(x1: Operand, x2: Operand) -> Tensor:
    """``x1 * x2``; integers wrap.

    Both tensors broadcast, as numpy's do, and have one dtype, of an integer or a float dtype;
    others are refused. The result has it, too.
    """

def negative(x: Operand) -> Tensor:
    """``-x``; unsigned integers wrap.

    Elementwise: `x` is a tensor of any shape, of an integer or a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def nonzero(x: Operand, at_least_1d: bool = False) -> Tensor:
    """The indices of the elements that are not 0: (rank, count), in row-major order; the count is a fresh symbol. Of a tensor without axes (0, count), as ONNX NonZero has it; with `at_least_1d` (1, count), as TVM has it.

    Args:
        at_least_1d: whether a tensor without axes counts as one of one element (True or
            False; False).
    """

def nonzero_static(
    x: Operand,
    size: Sequence[Dim | Tensor] | Tensor,
    fill_value: int = -1,
) -> Tensor:
    """The indices of the first `size` elements that are not 0: (rank, size), in row-major order, int64; `fill_value` behind the last (torch.nonzero_static, transposed).

    Args:
        fill_value: what fills places that are left over (an int; -1).
    """

def not_equal(x1: Operand, x2: Operand) -> Tensor:
    """``x1 != x2``; true with NaN.

    Both tensors broadcast, as numpy's do, and have one dtype; others are refused.
    The result is bool.
    """

def one_hot(
    indices: Operand,
    on_value: Operand,
    off_value: Operand,
    depth: Dim,
    axis: int = -1,
) -> Tensor:
    """`on_value` at the index's place along a new axis of `depth`, elsewhere `off_value`.

    A negative index counts from the end, one out of range is nowhere (R.one_hot, ONNX OneHot).

    Args:
        depth: the extent of the new axis (a dim).
        axis: which axis or axes, negative ones from the end (an int; -1).
    """

def ones(shape: Sequence[Dim | Tensor] | Tensor, dtype: str | DType = "float32") -> Tensor:
    """A tensor of ones. Its `shape` may hold dims; `dtype` is any, bool included.

    Args:
        dtype: the elements of the result (a dtype; 'float32').
    """

def ones_like(x: Operand, dtype: str | DType | None = None) -> Tensor:
    """A tensor of ones. Shaped like `x`, and of its dtype unless one is given.

    Args:
        dtype: the elements of the result; None: the operand's (a dtype; None).
    """

def outer(x1: Operand, x2: Operand) -> Tensor:
    """``x1[i] * x2[j]`` of two vectors, ``(n,)`` and ``(m,)`` to ``(n, m)`` (R.outer)."""

def pairwise_coupling(x: Operand) -> Tensor:
    """The probabilities of classes, (rows, classes), that fit those of pairs best.

    ``x[n, i, j]``, (rows, classes, classes), is how probable i is where it is i or j; what it
    is of a class and itself does not count. Iterated until all conditions hold to 0.005 by the
    number of classes, at most a hundred times (Wu, Lin and Weng 2004, their second method, as
    libsvm and onnxruntime do for support vector machines).
    """

def permute_dims(x: Operand, axes: int | Sequence[int] | None = None) -> Tensor:
    """Axes in another order, reversed by default (R.permute_dims, ONNX Transpose).

    Args:
        axes: the axis that each axis of the result is; None turns them all around (an int
            or a tuple of ints; None).
    """

def power(x1: Operand, x2: Operand) -> Tensor:
    """``x1 ** x2``, on floats.

    Both tensors broadcast, as numpy's do, and have one dtype, of a float dtype;
    others are refused. The result has it, too.
    """

def prod(x: Operand, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The product over `axis` (None: all); `keepdims` leaves the reduced axes as 1; integers wrap.

    Args:
        axis: which axis or axes, negative ones from the end (an int or a tuple of ints;
            None).
        keepdims: whether reduced axes stay, of extent 1 (True or False; False).
    """

def quantize(
    x: Operand,
    scale: Operand,
    zero_point: Operand,
    axis: int = -1,
    out_dtype: str | DType = "int8",
) -> Tensor:
    """``clip(round(x / scale) + zero_point)`` in `out_dtype`; shape of x (R.quantize).

    `scale` (floats) and `zero_point` (integers) are scalars or vectors of ``x.shape[axis]``.
    Halves round to even, what `out_dtype` does not hold becomes the nearest that it holds.
    `x` is a float tensor, `out_dtype` an integer of at most 16 bits; float32 is computed in,
    float64 for float64 (ONNX QuantizeLinear).

    Args:
        axis: which axis or axes, negative ones from the end (an int; -1).
        out_dtype: the integers, or small floats, of the result (a dtype; 'int8').
    """

def reciprocal(x: Operand) -> Tensor:
    """``1 / x``.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def repeat(x: Operand, repeats: Dim | Sequence[Dim], axis: int | None = None) -> Tensor:
    """Each element repeated in place along `axis`; of the flattened tensor by default (R.repeat, numpy.repeat).

    Args:
        repeats: how often each element (a dim or a tuple of dims).
        axis: which axis or axes, negative ones from the end (an int; None).
    """

def reshape(x: Operand, shape: Sequence[Dim | Tensor] | Tensor) -> Tensor:
    """The same elements in row-major order under another shape (R.reshape, ONNX Reshape).

    One dim may be -1: it takes what is left. The element counts must be provably equal. A 0 is
    an extent of zero (ONNX's "copy this dim" is the importer's affair).
    """

def reverse_sequence(
    x: Operand,
    seq_lengths: Operand,
    seq_axis: int = 1,
    batch_axis: int = 0,
) -> Tensor:
    """The first ``seq_lengths[b]`` elements along `seq_axis` in reverse, of each batch b.

    A length above the extent is the extent, one below 0 is 0 (R.reverse_sequence, ONNX
    ReverseSequence).

    Args:
        seq_axis: the axis that is reversed (an int; 1).
        batch_axis: the axis along which the lengths are (an int; 0).
    """

def right_shift(x1: Operand, x2: Operand) -> Tensor:
    """``x1 >> x2`` for ``0 <= x2``, keeping the sign; shifting all bits out leaves it.

    Both tensors broadcast, as numpy's do, and have one dtype, of an integer dtype;
    others are refused. The result has it, too.
    """

def roll(x: Operand, shift: int | Sequence[int], axis: int | Sequence[int]) -> Tensor:
    """Elements moved on by `shift` along `axis`, the last to the front (numpy, torch.roll).

    Args:
        shift: how far, negative towards the front (an int or a tuple of ints).
        axis: which axis or axes, negative ones from the end (an int or a tuple of ints).
    """

def round(x: Operand) -> Tensor:
    """Rounded to the nearest integer, ties to even (ONNX Round, numpy.rint).

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def rsqrt(x: Operand) -> Tensor:
    """``1 / sqrt(x)``.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def scalar_tensor(value: object, dtype: str | DType) -> Tensor:
    """A scalar as a tensor of rank 0, of the scalar's own dtype (torch.scalar_tensor). Operators make it of scalars that they are given: ``x * s``, ``R.full((n,), s)``.

    Args:
        dtype: the elements of the result (a dtype).
    """

def scatter_elements(
    x: Operand,
    indices: Operand,
    updates: Operand,
    axis: int = 0,
    reduction: str = "update",
) -> Tensor:
    """x with ``x[i, indices[i, j], k] = updates[i, j, k]`` and the like along `axis`.

    `reduction` is update, add, mul, max or min. A negative index counts from the end; one out
    of range writes nothing, without an error unless compiled with ``check_bounds=True``
    (R.scatter_elements, ONNX ScatterElements).

    Args:
        axis: which axis or axes, negative ones from the end (an int; 0).
        reduction: how updates join what is there: update, add, mul, min, max (text;
            'update').
    """

def scatter_nd(x: Operand, indices: Operand, updates: Operand, reduction: str = "update") -> Tensor:
    """x with slices at index vectors, the last axis of `indices`, replaced by `updates`.

    `reduction` is update, add, mul, max or min. Indices are taken as in scatter_elements
    (R.scatter_nd, ONNX ScatterND).

    Args:
        reduction: how updates join what is there: update, add, mul, min, max (text;
            'update').
    """

def shape_of(x: Operand) -> Tensor:
    """The shape of a tensor as a shape value (R.shape_of)."""

def shape_to_tensor(shape: Sequence[Dim | Tensor] | Tensor) -> Tensor:
    """A shape value as an int64 vector (R.shape_to_tensor)."""

def sigmoid(x: Operand) -> Tensor:
    """``1 / (1 + exp(-x))``.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def sign(x: Operand) -> Tensor:
    """-1, 0 or 1; NaN stays NaN.

    Elementwise: `x` is a tensor of any shape, of an integer or a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def sin(x: Operand) -> Tensor:
    """The sine.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def sinh(x: Operand) -> Tensor:
    """The hyperbolic sine.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def size(x: Operand) -> Tensor:
    """How many elements a tensor has, an int64 scalar (R.size, ONNX Size)."""

def slice_scatter(
    x: Operand,
    update: Operand,
    begin: Dim | None,
    end: Dim | None,
    stride: int = 1,
    axis: int = 0,
) -> Tensor:
    """x with ``x[begin:end:stride]`` along `axis` replaced by `update` (R.slice_scatter).

    Bounds as in strided_slice; `update` must have exactly the slice's shape.

    Args:
        begin: the first index, one for each axis where there are several, or None (a dim or
            None).
        end: behind the last index, one for each axis where there are several; None: the far
            end (a dim or None).
        stride: how far apart indices are (an int; 1).
        axis: which axis or axes, negative ones from the end (an int; 0).
    """

def sort(x: Operand, axis: int = -1, descending: bool = False) -> Tensor:
    """Each row along `axis` sorted (R.sort). NaN is greatest.

    Args:
        axis: which axis or axes, negative ones from the end (an int; -1).
        descending: whether the greatest come first (True or False; False).
    """

def space_to_depth(x: Operand, block_size: int) -> Tensor:
    """``(n, c, h * b, w * b)`` to ``(n, b * b * c, h, w)``: ONNX SpaceToDepth.

    Args:
        block_size: the side of a block of pixels (an int).
    """

def split(
    x: Operand,
    indices_or_sections: Dim | Sequence[Dim],
    axis: int = 0,
) -> tuple[Tensor, ...]:
    """A tuple of parts along `axis`: a number of equal ones, or cut at ascending indices.

    The indices may be dims; each must provably lie within the extent (R.split, ONNX Split).

    Args:
        indices_or_sections: in how many equal parts, or where each part but the first
            begins (a dim or a tuple of dims).
        axis: which axis or axes, negative ones from the end (an int; 0).
    """

def sqrt(x: Operand) -> Tensor:
    """The square root; NaN below 0.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def square(x: Operand) -> Tensor:
    """``x * x``; integers wrap.

    Elementwise: `x` is a tensor of any shape, of an integer or a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def squeeze(x: Operand, axis: int | Sequence[int] | None = None) -> Tensor:
    """Axes of extent 1 dropped: those of `axis`, or all known to be 1, of any dtype (R.squeeze, ONNX Squeeze).

    Args:
        axis: which axis or axes, negative ones from the end (an int or a tuple of ints;
            None).
    """

def stack(tensors: Sequence[Operand] | Tensor, axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis (R.stack).

    Args:
        axis: which axis or axes, negative ones from the end (an int; 0).
    """

def std(x: Operand, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The deviation over `axis` (all by default), the root of `R.variance` (R.std).

    It divides by the number of elements, as numpy does; torch divides by one less. Of integers
    it is a float64, as np.std.

    Args:
        axis: which axis or axes, negative ones from the end (an int or a tuple of ints;
            None).
        keepdims: whether reduced axes stay, of extent 1 (True or False; False).
    """

def stretch(x: Operand, shape: Sequence[Dim | Tensor] | Tensor) -> Tensor:
    """Repeated along the axes whose extent turns out to be 1 at run time.

    The other axes must have the extents of `shape`, which is checked before (`R.match_cast`):
    broadcast_to where it is not known which dims are 1.
    """

def strided_slice(
    x: Operand,
    axes: int | Sequence[int],
    begin: Sequence[Dim | None],
    end: Sequence[Dim | None],
    strides: int | Sequence[int] | None = None,
) -> Tensor:
    """``x[begin:end:strides]`` along `axes`, by Python's rules (R.strided_slice, ONNX Slice).

    Bounds are ints, dims or None (the far end); negative ones count from the end, and all are
    clamped, so nothing outside is read. An int of ``2**31 - 1`` or more means the end. A dim
    that may be of either sign costs a wordy result shape; name that with match_cast.

    Args:
        axes: which axes, negative ones from the end (an int or a tuple of ints).
        begin: the first index, one for each axis where there are several, or None (a tuple
            of dims, None where there is no bound).
        end: behind the last index, one for each axis where there are several; None: the far
            end (a tuple of dims, None where there is no bound).
        strides: how far apart indices are, one for each axis; None: 1 (an int or a tuple of
            ints; None).
    """

def subtract(x1: Operand, x2: Operand) -> Tensor:
    """``x1 - x2``; integers wrap.

    Both tensors broadcast, as numpy's do, and have one dtype, of an integer or a float dtype;
    others are refused. The result has it, too.
    """

def sum(x: Operand, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """The sum over `axis` (None: all); `keepdims` leaves the reduced axes as 1; integers wrap.

    Args:
        axis: which axis or axes, negative ones from the end (an int or a tuple of ints;
            None).
        keepdims: whether reduced axes stay, of extent 1 (True or False; False).
    """

def take(x: Operand, indices: Operand, axis: int | None = None) -> Tensor:
    """Slices of x at `indices` along `axis`, which then has the shape of the indices.

    Result: ``(*x.shape[:axis], *indices.shape, *x.shape[axis + 1:])``. A negative index counts
    from the end; one out of range takes the nearest in range, without an error unless compiled
    with ``check_bounds=True`` (R.take, ONNX Gather).

    Args:
        axis: which axis or axes, negative ones from the end (an int; None).
    """

def tan(x: Operand) -> Tensor:
    """The tangent.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def tanh(x: Operand) -> Tensor:
    """The hyperbolic tangent.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def tensor_to_shape(x: Operand) -> Tensor:
    """An int64 vector as a shape value; a match_cast names its dims (R.tensor_to_shape)."""

def tile(x: Operand, repeats: Dim | Sequence[Dim]) -> Tensor:
    """The whole repeated along each axis; the shorter of shape and `repeats` is led by ones (R.tile, numpy.tile).

    Args:
        repeats: how often, one number or one for each axis (a dim or a tuple of dims).
    """

def topk(
    x: Operand,
    k: Dim,
    axis: int = -1,
    largest: bool = True,
    dtype: str | DType = "int64",
) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) along `axis` in order, and their indices (ONNX TopK, R.topk).

    k is a dim that provably does not exceed the extent. Of equals the first in x comes first.

    Args:
        k: how many (a dim).
        axis: which axis or axes, negative ones from the end (an int; -1).
        largest: whether the largest, else the smallest (True or False; True).
        dtype: that of the indices (a dtype; 'int64').
    """

def tree_ensemble(
    x: Operand,
    nodes: Operand,
    values: Operand,
    join: str = "sum",
    checked: bool = False,
) -> Tensor:
    """The leaves' values of complete trees, joined; x is ``[rows, columns]`` of floats.

    `nodes` is ``[groups, trees, 2 ** depth, 2]``, which `complete_records` makes: from node 1,
    a row goes from node i to 2 i if its column is at most the threshold, else (as NaN) to
    2 i + 1; `values` is ``[groups, trees, 2 ** depth, outputs]``, for each leaf from the left.
    The result, ``[rows, groups, outputs]``, is the sum (in the order of the trees), the least
    or the greatest of each group's trees. Indices out of range are clamped, unless the caller
    says that they were `checked`. (ONNX TreeEnsemble; Hummingbird's PerfectTreeTraversal.)
    """

def tril(x: Operand, k: Dim = 0) -> Tensor:
    """The lower triangle ``j <= i + k`` of the last two axes.

    Args:
        k: which diagonal, above the main one if positive (a dim; 0).
    """

def triu(x: Operand, k: Dim = 0) -> Tensor:
    """The upper triangle ``j >= i + k`` of the last two axes.

    Args:
        k: which diagonal, above the main one if positive (a dim; 0).
    """

def trunc(x: Operand) -> Tensor:
    """Rounded towards zero.

    Elementwise: `x` is a tensor of any shape, of a float dtype; another is
    refused. The result has its shape and its dtype.
    """

def unique(
    x: Operand,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Tensor:
    """The different elements of a tensor ``(unique,)``, or with `axis` its different slices.

    How many there are, `unique`, is a fresh symbol. They ascend if `sorted`, else they come as
    they stand first; NaNs are one, above all, and so are the two zeros. After them, as int64:
    with `return_index` where each stands first, ``(unique,)``, in row-major order; with
    `return_inverse` which of them each element is, of the shape of `x`, or each slice,
    ``(n,)``; with `return_counts` how often each is there, ``(unique,)`` (R.unique, ONNX
    Unique, np.unique). The sizes of `x` must be known, if only as symbols.

    Args:
        sorted: whether values are in order; else as they come first (True or False; True).
        return_index: whether the result tells where each value is first (True or False;
            False).
        return_inverse: whether the result tells which value each element is (True or False;
            False).
        return_counts: whether the result tells how often each value is there (True or
            False; False).
        axis: which axis or axes, negative ones from the end (an int; None).
    """

def variance(x: Operand, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
    """Mean squared deviation over `axis` (None: all); `keepdims` leaves the reduced axes as 1; of integers a float64, as np.var.

    Args:
        axis: which axis or axes, negative ones from the end (an int or a tuple of ints;
            None).
        keepdims: whether reduced axes stay, of extent 1 (True or False; False).
    """

def where(condition: Operand, x1: Operand, x2: Operand) -> Tensor:
    """`x1` where `condition`, else `x2`; all three broadcast."""

def zeros(shape: Sequence[Dim | Tensor] | Tensor, dtype: str | DType = "float32") -> Tensor:
    """A tensor of zeros. Its `shape` may hold dims; `dtype` is any, bool included.

    Args:
        dtype: the elements of the result (a dtype; 'float32').
    """

def zeros_like(x: Operand, dtype: str | DType | None = None) -> Tensor:
    """A tensor of zeros. Shaped like `x`, and of its dtype unless one is given.

    Args:
        dtype: the elements of the result; None: the operand's (a dtype; None).
    """

class grad:
    @staticmethod
    def avg_pool2d_backward(
        output_grad: Operand,
        data: Operand,
        pool_size: int | Sequence[int] = (1, 1),
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        layout: str = "NCHW",
    ) -> Tensor:
        """The gradient of `data` of `nn.avg_pool2d`, whose result has `output_grad`.

        `data` is ``(n, c, h, w)``, of a float dtype, and only its shape counts; the attributes are
        those of `nn.avg_pool2d`. Gives the shape and the dtype of `data`
        (R.grad.avg_pool2d_backward).

        Args:
            pool_size: the extents of a window (an int or a tuple of ints; (1, 1)).
            strides: how far apart windows are, of each axis (an int or a tuple of ints; 1).
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            ceil_mode: whether windows that reach beyond the end count, if they begin inside
                (True or False; False).
            count_include_pad: whether padding counts in the mean, as zeros (True or False;
                False).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCHW').
        """

    @staticmethod
    def max_pool2d_backward(
        output_grad: Operand,
        data: Operand,
        pool_size: int | Sequence[int] = (1, 1),
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        layout: str = "NCHW",
    ) -> Tensor:
        """The gradient of `data` of `nn.max_pool2d`, whose result has `output_grad`.

        All of a window's gradient goes to the first of its largest pixels, row by row, NaN before
        any. `data` is ``(n, c, h, w)``, of a float dtype; the attributes are those of
        `nn.max_pool2d`. Gives the shape and the dtype of `data` (R.grad.max_pool2d_backward).

        Args:
            pool_size: the extents of a window (an int or a tuple of ints; (1, 1)).
            strides: how far apart windows are, of each axis (an int or a tuple of ints; 1).
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            ceil_mode: whether windows that reach beyond the end count, if they begin inside
                (True or False; False).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCHW').
        """

    @staticmethod
    def nll_loss_backward(
        output_grad: Operand,
        predictions: Operand,
        targets: Operand,
        weights: Operand | None = None,
        reduction: str = "mean",
        ignore_index: int = -100,
    ) -> Tensor:
        """The gradient of the predictions of `nn.nll_loss`, whose result has `output_grad`.

        `output_grad` is ``(n, ...)`` with `reduction` "none", else ``()``; the other parameters are
        those of `nn.nll_loss`. Gives the shape and the dtype of `predictions`
        (R.grad.nll_loss_backward).

        Args:
            reduction: mean, sum or none: what becomes of the losses (text; 'mean').
            ignore_index: the class that does not count (an int; -100).
        """

    @staticmethod
    def take_backward(
        output_grad: Operand,
        x: Operand,
        indices: Operand,
        axis: int | None = None,
    ) -> Tensor:
        """The gradient of `x` of ``take(x, indices, axis)``, whose result has `output_grad`.

        Each element of `output_grad` ``(*x.shape[:axis], *indices.shape, *x.shape[axis + 1:])`` is
        added where it was taken from; gives the shape and the float dtype of `x`
        (R.grad.take_backward).

        Args:
            axis: which axis or axes, negative ones from the end (an int; None).
        """

class image:
    @staticmethod
    def affine_grid(
        x: Operand,
        size: Sequence[Dim | Tensor] | Tensor,
        align_corners: bool = True,
    ) -> Tensor:
        """Points of a grid, each mapped by an affine matrix: what `image.grid_sample` takes.

        Of matrices ``(n, 2, 3)`` and a size ``(h, w)`` points ``(n, 2, h, w)``, x before y; of
        ``(n, 3, 4)`` and ``(d, h, w)`` points ``(n, 3, d, h, w)``. -1 and 1 are the outermost
        pixels' centers with `align_corners`, else their outer edges (R.image.affine_grid; torch
        and ONNX AffineGrid have the coordinates last).

        Args:
            align_corners: whether -1 and 1 are the centers of the outermost pixels, else their
                edges (True or False; True).
        """

    @staticmethod
    def grid_sample(
        x: Operand,
        grid: Operand,
        method: str = "bilinear",
        layout: str = "NCHW",
        padding_mode: str = "zeros",
        align_corners: bool = False,
    ) -> Tensor:
        """Pixels of images ``(n, c, h, w)`` at the points of a grid, ``(n, 2, h2, w2)``.

        Points are x, y, from -1 to 1 as in `image.affine_grid`; `method` is bilinear, nearest or
        bicubic, and outside are zeros, the border's pixels, or the image in a mirror: zeros,
        border, reflection (R.image.grid_sample; torch and ONNX GridSample have the coordinates
        last). A coordinate that is NaN gives, as in torch, NaN where pixels are weighed, and by the
        first pixel where coordinates are moved into the image or the nearest one is taken.

        Args:
            method: what lies between pixels: nearest, linear (of grids bilinear) or cubic
                (bicubic) (text; 'bilinear').
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCHW').
            padding_mode: what is outside: zeros, border or reflection (text; 'zeros').
            align_corners: whether -1 and 1 are the centers of the outermost pixels, else their
                edges (True or False; False).
        """

    @staticmethod
    def resize2d(
        x: Operand,
        size: Sequence[Dim | Tensor] | Tensor,
        roi: Sequence[float] | None = None,
        layout: str = "NCHW",
        method: str = "linear",
        coordinate_transformation_mode: str = "half_pixel",
        rounding_method: str = "round",
        cubic_alpha: float = -0.75,
        cubic_exclude: int = 0,
        extrapolation_value: float = 0.0,
        out_dtype: str | DType | None = None,
    ) -> Tensor:
        """Images, ``NCHW`` or ``NHWC``, at another `size` (R.image.resize2d, ONNX Resize).

        `method` is nearest_neighbor, linear, cubic; `coordinate_transformation_mode` and `rounding_method`
        are ONNX's: half_pixel, align_corners, asymmetric, pytorch_half_pixel, tf_half_pixel_for_nn, tf_crop_and_resize; round, round_prefer_floor, round_prefer_ceil, floor, ceil, or "" for round with
        align_corners and floor without. `roi`, begins then ends as parts of the extents, is what
        tf_crop_and_resize takes, `extrapolation_value` stands outside of it. `out_dtype` is x's by
        default; sums are in float32. An image that turns out to have no pixels gives zeros.

        Args:
            roi: the part that tf_crop_and_resize takes, begins then ends, as parts of the
                extents (a tuple of numbers; None).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCHW').
            method: nearest_neighbor, linear or cubic (text; 'linear').
            coordinate_transformation_mode: where an index of the result lies in the image, by
                ONNX's names (text; 'half_pixel').
            rounding_method: how nearest_neighbor rounds, by ONNX's names (text; 'round').
            cubic_alpha: the coefficient of cubic weights (a number; -0.75).
            cubic_exclude: 1: weights outside the image are left out; else 0 (an int; 0).
            extrapolation_value: what tf_crop_and_resize has outside of `roi` (a number; 0.0).
            out_dtype: the elements of the result; None: the operands' (a dtype; None).
        """

    @staticmethod
    def resize3d(
        x: Operand,
        size: Sequence[Dim | Tensor] | Tensor,
        roi: Sequence[float] | None = None,
        layout: str = "NCDHW",
        method: str = "linear",
        coordinate_transformation_mode: str = "half_pixel",
        rounding_method: str = "",
        cubic_alpha: float = -0.75,
        cubic_exclude: int = 0,
        extrapolation_value: float = 0.0,
        out_dtype: str | DType | None = None,
    ) -> Tensor:
        """Images, ``NCDHW`` or ``NDHWC``, at another `size` (R.image.resize3d, ONNX Resize).

        `method` is nearest_neighbor, linear, cubic; `coordinate_transformation_mode` and `rounding_method`
        are ONNX's: half_pixel, align_corners, asymmetric, pytorch_half_pixel, tf_half_pixel_for_nn, tf_crop_and_resize; round, round_prefer_floor, round_prefer_ceil, floor, ceil, or "" for round with
        align_corners and floor without. `roi`, begins then ends as parts of the extents, is what
        tf_crop_and_resize takes, `extrapolation_value` stands outside of it. `out_dtype` is x's by
        default; sums are in float32. An image that turns out to have no pixels gives zeros.

        Args:
            roi: the part that tf_crop_and_resize takes, begins then ends, as parts of the
                extents (a tuple of numbers; None).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCDHW').
            method: nearest_neighbor, linear or cubic (text; 'linear').
            coordinate_transformation_mode: where an index of the result lies in the image, by
                ONNX's names (text; 'half_pixel').
            rounding_method: how nearest_neighbor rounds, by ONNX's names (text; '').
            cubic_alpha: the coefficient of cubic weights (a number; -0.75).
            cubic_exclude: 1: weights outside the image are left out; else 0 (an int; 0).
            extrapolation_value: what tf_crop_and_resize has outside of `roi` (a number; 0.0).
            out_dtype: the elements of the result; None: the operands' (a dtype; None).
        """

class memory:
    @staticmethod
    def alloc_arena(shape: Sequence[Dim | Tensor] | Tensor) -> Tensor:
        """Storage of ``shape[0]`` bytes for one call of the function."""

    @staticmethod
    def alloc_tensor(shape: Sequence[Dim | Tensor] | Tensor, dtype: str | DType) -> Tensor:
        """A tensor with storage of its own: it may outlive the call.

        Args:
            dtype: the elements of the result (a dtype).
        """

    @staticmethod
    def call_kernel(
        kernel: object,
        args: Sequence[Operand] | Tensor,
        sizes: Sequence[Dim | Tensor] | Tensor,
    ) -> Tensor:
        """Runs a prim func on tensors (inputs, then destinations) with the values of its sizes."""

    @staticmethod
    def reshape_view(x: Operand, shape: Sequence[Dim | Tensor] | Tensor) -> Tensor:
        """The same storage under another shape of as many elements."""

    @staticmethod
    def view(
        arena: object,
        offset: Sequence[Dim | Tensor] | Tensor,
        shape: Sequence[Dim | Tensor] | Tensor,
        dtype: str | DType,
    ) -> Tensor:
        """A tensor in an arena, ``offset[0]`` bytes from its start.

        Args:
            dtype: the elements of the result (a dtype).
        """

class nn:
    @staticmethod
    def adaptive_avg_pool1d(
        x: Operand,
        output_size: int | Sequence[int] = (1,),
        layout: str = "NCW",
    ) -> Tensor:
        """The mean over `output_size` parts of each of 1
        spatial axes of (NCW).

        Part i of p of an axis of n is ``floor(i * n / p) <= x < ceil((i + 1) * n / p)``
        (R.nn.adaptive_avg_pool1d, torch; with 1 it is ONNX GlobalAveragePool). Of integers it
        is a float64, as np.mean.

        Args:
            output_size: the extents of the result; None keeps one (an int or a tuple of ints;
                (1,)).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCW').
        """

    @staticmethod
    def adaptive_avg_pool2d(
        x: Operand,
        output_size: int | Sequence[int] = (1, 1),
        layout: str = "NCHW",
    ) -> Tensor:
        """The mean over `output_size` parts of each of 2
        spatial axes of (NCHW).

        Part i of p of an axis of n is ``floor(i * n / p) <= x < ceil((i + 1) * n / p)``
        (R.nn.adaptive_avg_pool2d, torch; with 1 it is ONNX GlobalAveragePool). Of integers it
        is a float64, as np.mean.

        Args:
            output_size: the extents of the result; None keeps one (an int or a tuple of ints;
                (1, 1)).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCHW').
        """

    @staticmethod
    def adaptive_avg_pool3d(
        x: Operand,
        output_size: int | Sequence[int] = (1, 1, 1),
        layout: str = "NCDHW",
    ) -> Tensor:
        """The mean over `output_size` parts of each of 3
        spatial axes of (NCDHW).

        Part i of p of an axis of n is ``floor(i * n / p) <= x < ceil((i + 1) * n / p)``
        (R.nn.adaptive_avg_pool3d, torch; with 1 it is ONNX GlobalAveragePool). Of integers it
        is a float64, as np.mean.

        Args:
            output_size: the extents of the result; None keeps one (an int or a tuple of ints;
                (1, 1, 1)).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCDHW').
        """

    @staticmethod
    def adaptive_max_pool1d(
        x: Operand,
        output_size: int | Sequence[int] = (1,),
        layout: str = "NCW",
    ) -> Tensor:
        """The maximum over `output_size` parts of each of 1
        spatial axes of (NCW).

        Part i of p of an axis of n is ``floor(i * n / p) <= x < ceil((i + 1) * n / p)``
        (torch's adaptive_max_pool1d; with 1 it is ONNX GlobalMaxPool). NaN if there is one.
        The result has the dtype of `x`, integers included.

        Args:
            output_size: the extents of the result; None keeps one (an int or a tuple of ints;
                (1,)).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCW').
        """

    @staticmethod
    def adaptive_max_pool2d(
        x: Operand,
        output_size: int | Sequence[int] = (1, 1),
        layout: str = "NCHW",
    ) -> Tensor:
        """The maximum over `output_size` parts of each of 2
        spatial axes of (NCHW).

        Part i of p of an axis of n is ``floor(i * n / p) <= x < ceil((i + 1) * n / p)``
        (torch's adaptive_max_pool2d; with 1 it is ONNX GlobalMaxPool). NaN if there is one.
        The result has the dtype of `x`, integers included.

        Args:
            output_size: the extents of the result; None keeps one (an int or a tuple of ints;
                (1, 1)).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCHW').
        """

    @staticmethod
    def adaptive_max_pool3d(
        x: Operand,
        output_size: int | Sequence[int] = (1, 1, 1),
        layout: str = "NCDHW",
    ) -> Tensor:
        """The maximum over `output_size` parts of each of 3
        spatial axes of (NCDHW).

        Part i of p of an axis of n is ``floor(i * n / p) <= x < ceil((i + 1) * n / p)``
        (torch's adaptive_max_pool3d; with 1 it is ONNX GlobalMaxPool). NaN if there is one.
        The result has the dtype of `x`, integers included.

        Args:
            output_size: the extents of the result; None keeps one (an int or a tuple of ints;
                (1, 1, 1)).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCDHW').
        """

    @staticmethod
    def attention(
        q: Operand,
        k: Operand,
        v: Operand,
        bias: Operand | None = None,
        mask: Operand | None = None,
        scale: float | None = None,
        fill: float = -1000000000.0,
        layouts: tuple[str, ...] | list[str] = ("BLHD", "BLHD", "BLHD", "BLHD"),
        heads: int | None = None,
        kv_heads: int | None = None,
        first: int | Sequence[int] = (0, 0, 0),
        keys: Dim | None = None,
        zero_unseen: bool = False,
        causal_mask: str | None = None,
    ) -> Tensor:
        """``softmax(where(mask, q k^T * scale, fill) + bias) v`` for each batch and head.

        Relax's R.nn.attention: `scale` is ``1 / sqrt(D)`` if it is left out. `q` is (B, L, H, D),
        `k` and `v` (B, keys, H, D), the result (B, L, H, Dv); `layouts` tells other orders of these
        axes, for q, k, v and the result. `bias` and the bool `mask` broadcast to (B, H, L, keys).

        Operands may be parts of larger tensors: `heads` heads from `first` on (one tensor may hold
        q, k and v), the first `keys` rows of caches. With `kv_heads`, that many heads of keys and
        values serve as many queries' heads each as fit (grouped queries). Narrow floats are summed
        in float32; the weights of bfloat16 values are rounded to it.

        `causal_mask` hides later keys: with ``"TopLeft"`` query i sees keys up to i, with
        ``"BottomRight"`` the last query sees all, the one before it all but one. Where there are
        more queries than keys, ``"BottomRightAbs"``, which is Relax's BottomRight, lets query i see
        keys up to ``i + L - keys``. Keys that a query does not see count for nothing, whatever they
        hold, and blocks of them are not read.

        A row that sees no keys gives 0; with `zero_unseen` also one of which `bias` leaves nothing,
        whose scores are all -inf, and else NaN.

        Args:
            scale: what scores are multiplied by; None: 1 / sqrt(the extent of a head) (a
                number; None).
            fill: what scores are where `mask` is false (a number; -1000000000.0).
            layouts: the order of the axes of queries, keys, values and the result (a tuple of
                texts; ('BLHD', 'BLHD', 'BLHD', 'BLHD')).
            heads: how many heads are computed; None: all that there are (an int; None).
            kv_heads: how many heads keys and values have; None: as many as queries (an int;
                None).
            first: the first head of q, k and v in their operands (an int or a tuple of ints;
                (0, 0, 0)).
            keys: how many rows of caches are keys; None: all (a dim; None).
            zero_unseen: whether a row of which `bias` leaves nothing gives 0, else NaN (True or
                False; False).
            causal_mask: 'TopLeft': query i sees keys up to i; 'BottomRight': the last query
                sees all; 'BottomRightAbs': up to i and the difference of the numbers of queries
                and keys; None: each sees all (text; None).
        """

    @staticmethod
    def attention_bias(
        query: Operand,
        key: Operand,
        value: Operand,
        bias: Operand | None = None,
        scale: float | None = None,
        causal_mask: str | None = None,
        window_size: int | None = None,
    ) -> Tensor:
        """`nn.attention` of ``(b, n, h, d)``, ``(b, m, h, d)`` and ``(b, m, h, e)``, a bias added.

        The bias broadcasts to ``(b, h, n, m)``; `scale` is one over the root of d by default.
        With `window_size` w, beside a causal mask, a query sees the last w keys that the mask
        leaves it (R.nn.attention_bias).

        Args:
            scale: what scores are multiplied by; None: 1 / sqrt(the extent of a head) (a
                number; None).
            causal_mask: 'TopLeft': query i sees keys up to i; 'BottomRight': the last query
                sees all; 'BottomRightAbs': up to i and the difference of the numbers of queries
                and keys; None: each sees all (text; None).
            window_size: how many of the last keys that the causal mask leaves a query sees;
                None: all (an int; None).
        """

    @staticmethod
    def attention_var_len(
        queries: Operand,
        keys: Operand,
        values: Operand,
        seqstart_q: Operand,
        max_seqlen_q: Operand,
        seqstart_k: Operand | None = None,
        max_seqlen_k: Operand | None = None,
        scale: float | None = None,
        causal_mask: str | None = None,
        window_size: int | None = None,
    ) -> Tensor:
        """`nn.attention` of sequences that lie one behind the other, each with itself alone.

        Of queries ``(1, n, h, d)``, keys ``(1, m, h, d)`` and values ``(1, m, h, e)``, in one float
        dtype, gives ``(1, n, h, e)``. Sequence i is ``seqstart_q[i]`` to ``seqstart_q[i + 1]``,
        integers ``(sequences + 1,)`` that ascend from 0, of keys those of `seqstart_k`, by default
        the same; what lies behind the last gives 0. `max_seqlen_q` and `max_seqlen_k`, integers,
        tell nothing more. `scale` is one over the root of d by default; `causal_mask` and
        `window_size` as in `nn.attention_bias`, of each sequence (R.nn.attention_var_len). The
        scores of all queries and keys are computed, so that n and m ought to be a few thousand.

        Args:
            scale: what scores are multiplied by; None: 1 / sqrt(the extent of a head) (a
                number; None).
            causal_mask: 'TopLeft': query i sees keys up to i; 'BottomRight': the last query
                sees all; 'BottomRightAbs': up to i and the difference of the numbers of queries
                and keys; None: each sees all (text; None).
            window_size: how many of the last keys that the causal mask leaves a query sees;
                None: all (an int; None).
        """

    @staticmethod
    def avg_pool1d(
        x: Operand,
        pool_size: int | Sequence[int] = (1,),
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        layout: str = "NCW",
    ) -> Tensor:
        """The mean over sliding windows of 1 spatial axes (NCW).

        The divisor is the number of taps in the input, or with `count_include_pad` in the input and
        its padding; what `ceil_mode` sticks out is never counted (R.nn.avg_pool1d, ONNX
        AveragePool, torch). Of integers it is a float64, as np.mean.

        Args:
            pool_size: the extents of a window (an int or a tuple of ints; (1,)).
            strides: how far apart windows are, of each axis (an int or a tuple of ints; 1).
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            ceil_mode: whether windows that reach beyond the end count, if they begin inside
                (True or False; False).
            count_include_pad: whether padding counts in the mean, as zeros (True or False;
                False).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCW').
        """

    @staticmethod
    def avg_pool2d(
        x: Operand,
        pool_size: int | Sequence[int] = (1, 1),
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        layout: str = "NCHW",
    ) -> Tensor:
        """The mean over sliding windows of 2 spatial axes (NCHW).

        The divisor is the number of taps in the input, or with `count_include_pad` in the input and
        its padding; what `ceil_mode` sticks out is never counted (R.nn.avg_pool2d, ONNX
        AveragePool, torch). Of integers it is a float64, as np.mean.

        Args:
            pool_size: the extents of a window (an int or a tuple of ints; (1, 1)).
            strides: how far apart windows are, of each axis (an int or a tuple of ints; 1).
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            ceil_mode: whether windows that reach beyond the end count, if they begin inside
                (True or False; False).
            count_include_pad: whether padding counts in the mean, as zeros (True or False;
                False).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCHW').
        """

    @staticmethod
    def avg_pool3d(
        x: Operand,
        pool_size: int | Sequence[int] = (1, 1, 1),
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        layout: str = "NCDHW",
    ) -> Tensor:
        """The mean over sliding windows of 3 spatial axes (NCDHW).

        The divisor is the number of taps in the input, or with `count_include_pad` in the input and
        its padding; what `ceil_mode` sticks out is never counted (R.nn.avg_pool3d, ONNX
        AveragePool, torch). Of integers it is a float64, as np.mean.

        Args:
            pool_size: the extents of a window (an int or a tuple of ints; (1, 1, 1)).
            strides: how far apart windows are, of each axis (an int or a tuple of ints; 1).
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            ceil_mode: whether windows that reach beyond the end count, if they begin inside
                (True or False; False).
            count_include_pad: whether padding counts in the mean, as zeros (True or False;
                False).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCDHW').
        """

    @staticmethod
    def batch_flatten(x: Operand) -> Tensor:
        """All axes but the first as one (R.nn.batch_flatten)."""

    @staticmethod
    def batch_norm(
        x: Operand,
        gamma: Operand,
        beta: Operand,
        mean: Operand,
        variance: Operand,
        axis: int = 1,
        epsilon: float = 1e-05,
    ) -> Tensor:
        """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` with given statistics.

        The vectors have shape ``(x.shape[axis],)``. This is inference: nothing is updated, and the
        result is one tensor (R.nn.batch_norm's first; ONNX BatchNormalization).

        Args:
            axis: which axis or axes, negative ones from the end (an int; 1).
            epsilon: what is added to the variance (of rms_norm, to the mean square) (a number;
                1e-05).
        """

    @staticmethod
    def cache_append(cache: Operand, new: Operand, length: Dim, axis: int = 0) -> Tensor:
        """`cache` with `new` in the place of its rows from `length` on, along `axis`.

        The other axes agree, and ``length + new rows <= cache rows`` must follow from the types: a
        cache of length + new rows + room rows has space. What lies behind the new rows stays.

        A cache that nothing else uses, and that the function's caller gave away (the function's
        attribute ``aliases``), is written in place: only the new rows are touched. XLA's
        dynamic_update_slice along one axis.

        Args:
            axis: which axis or axes, negative ones from the end (an int; 0).
        """

    @staticmethod
    def celu(x: Operand, alpha: float = 1.0) -> Tensor:
        """``x`` where ``x >= 0``, else ``alpha * (exp(x / alpha) - 1)`` (ONNX Celu, torch's celu).

        Elementwise: `x` is a tensor of any shape, of a float dtype; another is
        refused. The result has its shape and its dtype.

        Args:
            alpha: the factor of what is below 0 (a number; 1.0).
        """

    @staticmethod
    def conv1d(
        x: Operand,
        weight: Operand,
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        data_layout: str = "NCW",
        kernel_layout: str = "OIW",
        out_dtype: str | DType | None = None,
    ) -> Tensor:
        """Cross-correlation over 1 spatial axes (NCW x OIW -> NCW).

        x ``(n, c, ...)``, weight ``(o, c / groups, ...)``, result ``(n, o, ...)`` where a spatial
        extent is ``(in + before + after - dilation * (kernel - 1) - 1) // stride + 1``. `padding`
        is one int, one for each axis, or all begins then all ends (R.nn.conv1d, ONNX Conv).
        Half-width floats accumulate in float32, integers in `out_dtype`.

        Args:
            strides: how far apart windows are, of each axis (an int or a tuple of ints; 1).
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            groups: in how many groups channels lie, each convolved by itself (an int; 1).
            data_layout: the order of the operand's axes: N batch, C channels, D, H, W lines
                (text; 'NCW').
            kernel_layout: the order of the weights' axes: O results, I operands, D, H, W taps
                (text; 'OIW').
            out_dtype: the elements of the result; None: the operands' (a dtype; None).
        """

    @staticmethod
    def conv1d_transpose(
        x: Operand,
        weight: Operand,
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        data_layout: str = "NCW",
        kernel_layout: str = "IOW",
        out_dtype: str | DType | None = None,
    ) -> Tensor:
        """Transposed convolution over 1 spatial axes (NCW x IOW -> NCW).

        x ``(n, c, ...)``, weight ``(c, o / groups, ...)``, result ``(n, o, ...)`` where a spatial
        extent is ``(in - 1) * stride - before - after + dilation * (kernel - 1) + 1 +
        output_padding`` (R.nn.conv1d_transpose, ONNX ConvTranspose, torch).

        Args:
            strides: how far apart the operand's elements are put, of each axis (an int or a
                tuple of ints; 1).
            padding: what is cut off: one number, one for each axis, all begins then all ends
                (an int or a tuple of ints; 0).
            output_padding: what is added at the end of each axis of the result, less than the
                stride (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            groups: in how many groups channels lie, each convolved by itself (an int; 1).
            data_layout: the order of the operand's axes: N batch, C channels, D, H, W lines
                (text; 'NCW').
            kernel_layout: the order of the weights' axes: I operands, O results, D, H, W taps
                (text; 'IOW').
            out_dtype: the elements of the result; None: the operands' (a dtype; None).
        """

    @staticmethod
    def conv2d(
        x: Operand,
        weight: Operand,
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        data_layout: str = "NCHW",
        kernel_layout: str = "OIHW",
        out_dtype: str | DType | None = None,
        algorithm: str | None = None,
    ) -> Tensor:
        """Cross-correlation over 2 spatial axes (NCHW x OIHW -> NCHW).

        x ``(n, c, ...)``, weight ``(o, c / groups, ...)``, result ``(n, o, ...)`` where a spatial
        extent is ``(in + before + after - dilation * (kernel - 1) - 1) // stride + 1``. `padding`
        is one int, one for each axis, or all begins then all ends (R.nn.conv2d, ONNX Conv).
        Half-width floats accumulate in float32, integers in `out_dtype`.

        Args:
            strides: how far apart windows are, of each axis (an int or a tuple of ints; 1).
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            groups: in how many groups channels lie, each convolved by itself (an int; 1).
            data_layout: the order of the operand's axes: N batch, C channels, D, H, W lines
                (text; 'NCHW').
            kernel_layout: the order of the weights' axes: O results, I operands, D, H, W taps
                (text; 'OIHW').
            out_dtype: the elements of the result; None: the operands' (a dtype; None).
            algorithm: how it is computed; None leaves that to the compiler (text; None).
        """

    @staticmethod
    def conv2d_blocked(
        x: Operand,
        weight: Operand,
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        depthwise: bool = False,
        out_dtype: str | DType | None = None,
        algorithm: str | None = None,
    ) -> Tensor:
        """Cross-correlation over 2 spatial axes, channels in blocks that lie innermost.

        x ``(n, c / b, h, w, b)``, weight ``(o / d, c / b, kh, kw, b, d)``, result
        ``(n, o / d, h', w', d)``; the blocks `b` and `d` may differ, and ``b = 1`` is the plain
        layout. With `depthwise` each channel sees itself alone: weight
        ``(c / b, 1, kh, kw, 1, b)``. Extents and attributes as in nn.conv2d.

        Args:
            strides: how far apart windows are, of each axis (an int or a tuple of ints; 1).
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            out_dtype: the elements of the result; None: the operands' (a dtype; None).
            algorithm: how it is computed; None leaves that to the compiler (text; None).
        """

    @staticmethod
    def conv2d_interleaved(
        x: Operand,
        weight: Operand,
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        line: int | None = None,
        out_dtype: str | DType | None = None,
    ) -> Tensor:
        """Cross-correlation over two spatial axes, channels in blocks, the depth in groups.

        x ``(n, c / b, h, w, b)``, weight ``(o / d, c / b, kh, kw, b / g, d, g)``, result
        ``(n, o / d, h', w', d)``. With few channels the `line` taps of a line, which lie together
        in x, are as one: weight ``(o / d, c / b, kh, 1, j / g, d, g)``, where `j` counts their
        channels, tap by tap, and weights from ``line * b`` on are zero. Attributes as in nn.conv2d.

        Args:
            strides: how far apart windows are, of each axis (an int or a tuple of ints; 1).
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            out_dtype: the elements of the result; None: the operands' (a dtype; None).
        """

    @staticmethod
    def conv2d_transpose(
        x: Operand,
        weight: Operand,
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        data_layout: str = "NCHW",
        kernel_layout: str = "IOHW",
        out_dtype: str | DType | None = None,
    ) -> Tensor:
        """Transposed convolution over 2 spatial axes (NCHW x IOHW -> NCHW).

        x ``(n, c, ...)``, weight ``(c, o / groups, ...)``, result ``(n, o, ...)`` where a spatial
        extent is ``(in - 1) * stride - before - after + dilation * (kernel - 1) + 1 +
        output_padding`` (R.nn.conv2d_transpose, ONNX ConvTranspose, torch).

        Args:
            strides: how far apart the operand's elements are put, of each axis (an int or a
                tuple of ints; 1).
            padding: what is cut off: one number, one for each axis, all begins then all ends
                (an int or a tuple of ints; 0).
            output_padding: what is added at the end of each axis of the result, less than the
                stride (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            groups: in how many groups channels lie, each convolved by itself (an int; 1).
            data_layout: the order of the operand's axes: N batch, C channels, D, H, W lines
                (text; 'NCHW').
            kernel_layout: the order of the weights' axes: I operands, O results, D, H, W taps
                (text; 'IOHW').
            out_dtype: the elements of the result; None: the operands' (a dtype; None).
        """

    @staticmethod
    def conv2d_winograd(
        x: Operand,
        weight: Operand,
        tile: int,
        padding: int | Sequence[int] = 0,
    ) -> Tensor:
        """Cross-correlation of stride 1 with transformed weights, channels in blocks innermost.

        x ``(n, c / b, h, w, b)``, weight ``(s, s, o / d, c / b, b, d)``, transformed by
        `transformed_weights`, result ``(n, o / d, h', w', d)``. `tile` is the outputs made
        along an axis of lines or pixels, of ``s = tile + k - 1`` inputs for kernels of `k`. Padding
        as in nn.conv2d.

        Args:
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
        """

    @staticmethod
    def conv3d(
        x: Operand,
        weight: Operand,
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        data_layout: str = "NCDHW",
        kernel_layout: str = "OIDHW",
        out_dtype: str | DType | None = None,
    ) -> Tensor:
        """Cross-correlation over 3 spatial axes (NCDHW x OIDHW -> NCDHW).

        x ``(n, c, ...)``, weight ``(o, c / groups, ...)``, result ``(n, o, ...)`` where a spatial
        extent is ``(in + before + after - dilation * (kernel - 1) - 1) // stride + 1``. `padding`
        is one int, one for each axis, or all begins then all ends (R.nn.conv3d, ONNX Conv).
        Half-width floats accumulate in float32, integers in `out_dtype`.

        Args:
            strides: how far apart windows are, of each axis (an int or a tuple of ints; 1).
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            groups: in how many groups channels lie, each convolved by itself (an int; 1).
            data_layout: the order of the operand's axes: N batch, C channels, D, H, W lines
                (text; 'NCDHW').
            kernel_layout: the order of the weights' axes: O results, I operands, D, H, W taps
                (text; 'OIDHW').
            out_dtype: the elements of the result; None: the operands' (a dtype; None).
        """

    @staticmethod
    def conv3d_blocked(
        x: Operand,
        weight: Operand,
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        depthwise: bool = False,
        out_dtype: str | DType | None = None,
        algorithm: str | None = None,
    ) -> Tensor:
        """Cross-correlation over 3 spatial axes, channels in blocks that lie innermost.

        x ``(n, c / b, d, h, w, b)``, weight ``(o / d, c / b, kd, kh, kw, b, d)``, result
        ``(n, o / d, d', h', w', d)``; the blocks `b` and `d` may differ, and ``b = 1`` is the plain
        layout. With `depthwise` each channel sees itself alone: weight
        ``(c / b, 1, kd, kh, kw, 1, b)``. Extents and attributes as in nn.conv3d.

        Args:
            strides: how far apart windows are, of each axis (an int or a tuple of ints; 1).
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            out_dtype: the elements of the result; None: the operands' (a dtype; None).
            algorithm: how it is computed; None leaves that to the compiler (text; None).
        """

    @staticmethod
    def conv3d_transpose(
        x: Operand,
        weight: Operand,
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        data_layout: str = "NCDHW",
        kernel_layout: str = "IODHW",
        out_dtype: str | DType | None = None,
    ) -> Tensor:
        """Transposed convolution over 3 spatial axes (NCDHW x IODHW -> NCDHW).

        x ``(n, c, ...)``, weight ``(c, o / groups, ...)``, result ``(n, o, ...)`` where a spatial
        extent is ``(in - 1) * stride - before - after + dilation * (kernel - 1) + 1 +
        output_padding`` (R.nn.conv3d_transpose, ONNX ConvTranspose, torch).

        Args:
            strides: how far apart the operand's elements are put, of each axis (an int or a
                tuple of ints; 1).
            padding: what is cut off: one number, one for each axis, all begins then all ends
                (an int or a tuple of ints; 0).
            output_padding: what is added at the end of each axis of the result, less than the
                stride (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            groups: in how many groups channels lie, each convolved by itself (an int; 1).
            data_layout: the order of the operand's axes: N batch, C channels, D, H, W lines
                (text; 'NCDHW').
            kernel_layout: the order of the weights' axes: I operands, O results, D, H, W taps
                (text; 'IODHW').
            out_dtype: the elements of the result; None: the operands' (a dtype; None).
        """

    @staticmethod
    def conv3d_winograd(
        x: Operand,
        weight: Operand,
        tile: int,
        padding: int | Sequence[int] = 0,
    ) -> Tensor:
        """Cross-correlation of stride 1 with transformed weights, channels in blocks innermost.

        x ``(n, c / b, t, h, w, b)``, weight ``(s, s, o / d, k * c / b, b, d)``, transformed by
        `transformed_weights`, of whose taps over frames each has blocks of its own, result ``(n, o / d, t', h', w', d)``. `tile` is the outputs made
        along an axis of lines or pixels, of ``s = tile + k - 1`` inputs for kernels of `k`. Padding
        as in nn.conv3d.

        Args:
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
        """

    @staticmethod
    def cross_entropy_with_logits(predictions: Operand, labels: Operand) -> Tensor:
        """``-sum(predictions * labels)``, by the first axis's length where there are several.

        The predictions are log-probabilities already (R.nn.cross_entropy_with_logits).
        """

    @staticmethod
    def dropout(x: Operand, rate: float = 0.5) -> tuple[Tensor, Tensor]:
        """x itself and a mask of ones: nothing is dropped outside of training (R.nn.dropout).

        A tuple of two of the shape and the float dtype of x, as Relax and ONNX Dropout give it.

        Args:
            rate: the part that is dropped when a model is trained, of 0 to 1 (a number; 0.5).
        """

    @staticmethod
    def elu(x: Operand, alpha: float = 1.0) -> Tensor:
        """``x`` where ``x >= 0``, else ``alpha * (exp(x) - 1)`` (ONNX Elu).

        Elementwise: `x` is a tensor of any shape, of a float dtype; another is
        refused. The result has its shape and its dtype.

        Args:
            alpha: the factor of what is below 0 (a number; 1.0).
        """

    @staticmethod
    def gelu(x: Operand) -> Tensor:
        """``x / 2 * (1 + erf(x / sqrt(2)))`` (R.nn.gelu, ONNX Gelu).

        Elementwise: `x` is a tensor of any shape, of a float dtype; another is
        refused. The result has its shape and its dtype.
        """

    @staticmethod
    def gelu_tanh(x: Operand) -> Tensor:
        """The tanh approximation of gelu (R.nn.gelu_tanh, ONNX Gelu approximate=tanh).

        Elementwise: `x` is a tensor of any shape, of a float dtype; another is
        refused. The result has its shape and its dtype.
        """

    @staticmethod
    def group_norm(
        x: Operand,
        gamma: Operand,
        beta: Operand,
        num_groups: int,
        channel_axis: int = 1,
        epsilon: float = 1e-05,
    ) -> Tensor:
        """Normalization over each of `num_groups` groups of channels and all axes but the first.

        gamma and beta have shape ``(channels,)`` (R.nn.group_norm, ONNX GroupNormalization 21).

        Args:
            num_groups: in how many groups channels lie, each normalized by itself (an int).
            channel_axis: the axis of the channels (an int; 1).
            epsilon: what is added to the variance (of rms_norm, to the mean square) (a number;
                1e-05).
        """

    @staticmethod
    def hardsigmoid(x: Operand, alpha: float = 0.16666666666666666, beta: float = 0.5) -> Tensor:
        """``clip(alpha * x + beta, 0, 1)`` (torch hardsigmoid; ONNX HardSigmoid has alpha 0.2).

        Elementwise: `x` is a tensor of any shape, of a float dtype; another is
        refused. The result has its shape and its dtype.

        Args:
            alpha: the slope (a number; 0.16666666666666666).
            beta: the value at 0 (a number; 0.5).
        """

    @staticmethod
    def hardswish(x: Operand) -> Tensor:
        """``x * clip(x / 6 + 1 / 2, 0, 1)`` (ONNX HardSwish).

        Elementwise: `x` is a tensor of any shape, of a float dtype; another is
        refused. The result has its shape and its dtype.
        """

    @staticmethod
    def instance_norm(
        x: Operand,
        gamma: Operand,
        beta: Operand,
        channel_axis: int = 1,
        epsilon: float = 1e-05,
    ) -> Tensor:
        """Normalization of each channel over all axes but the first and `channel_axis`.

        gamma and beta have shape ``(channels,)`` (R.nn.instance_norm, ONNX
        InstanceNormalization).

        Args:
            channel_axis: the axis of the channels (an int; 1).
            epsilon: what is added to the variance (of rms_norm, to the mean square) (a number;
                1e-05).
        """

    @staticmethod
    def layer_norm(
        x: Operand,
        gamma: Operand,
        beta: Operand | None = None,
        axes: int | Sequence[int] = -1,
        epsilon: float = 1e-05,
    ) -> Tensor:
        """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` over `axes`.

        gamma and beta (optional) have the shape of those axes (R.nn.layer_norm, ONNX
        LayerNormalization). Statistics are in float32 for narrower floats.

        Args:
            axes: which axes, negative ones from the end (an int or a tuple of ints; -1).
            epsilon: what is added to the variance (of rms_norm, to the mean square) (a number;
                1e-05).
        """

    @staticmethod
    def leakyrelu(x: Operand, alpha: float = 0.01) -> Tensor:
        """``x`` where ``x >= 0``, else ``alpha * x`` (R.nn.leakyrelu, ONNX LeakyRelu).

        Elementwise: `x` is a tensor of any shape, of a float dtype; another is
        refused. The result has its shape and its dtype.

        Args:
            alpha: the slope below 0 (a number; 0.01).
        """

    @staticmethod
    def log_softmax(x: Operand, axis: int = -1) -> Tensor:
        """The logarithm of softmax along `axis` (R.nn.log_softmax, ONNX LogSoftmax 13).

        Args:
            axis: which axis or axes, negative ones from the end (an int; -1).
        """

    @staticmethod
    def logsigmoid(x: Operand) -> Tensor:
        """``log(sigmoid(x))``, which overflows nowhere (torch's logsigmoid).

        Elementwise: `x` is a tensor of any shape, of a float dtype; another is
        refused. The result has its shape and its dtype.
        """

    @staticmethod
    def lrn(
        x: Operand,
        size: int,
        axis: int = 1,
        alpha: float = 0.0001,
        beta: float = 0.75,
        bias: float = 1.0,
    ) -> Tensor:
        """``x / (bias + alpha / size * s) ** beta``, s the sum of squares of `size` neighbours.

        Neighbours are along `axis`, ``(size - 1) // 2`` before and ``size // 2`` behind (ONNX LRN).

        Args:
            size: how many neighbours (an int).
            axis: which axis or axes, negative ones from the end (an int; 1).
            alpha: the factor of the mean of squares (a number; 0.0001).
            beta: the exponent (a number; 0.75).
            bias: what is added to the mean of squares (a number; 1.0).
        """

    @staticmethod
    def max_pool1d(
        x: Operand,
        pool_size: int | Sequence[int] = (1,),
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        layout: str = "NCW",
    ) -> Tensor:
        """The maximum over sliding windows of 1 spatial axes (NCW).

        With `ceil_mode` a last window may stick out at the end, but none starts behind the input
        (R.nn.max_pool1d, ONNX MaxPool, torch). Padding never wins. The result has the dtype of
        `x`, integers included.

        Args:
            pool_size: the extents of a window (an int or a tuple of ints; (1,)).
            strides: how far apart windows are, of each axis (an int or a tuple of ints; 1).
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            ceil_mode: whether windows that reach beyond the end count, if they begin inside
                (True or False; False).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCW').
        """

    @staticmethod
    def max_pool2d(
        x: Operand,
        pool_size: int | Sequence[int] = (1, 1),
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        layout: str = "NCHW",
    ) -> Tensor:
        """The maximum over sliding windows of 2 spatial axes (NCHW).

        With `ceil_mode` a last window may stick out at the end, but none starts behind the input
        (R.nn.max_pool2d, ONNX MaxPool, torch). Padding never wins. The result has the dtype of
        `x`, integers included.

        Args:
            pool_size: the extents of a window (an int or a tuple of ints; (1, 1)).
            strides: how far apart windows are, of each axis (an int or a tuple of ints; 1).
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            ceil_mode: whether windows that reach beyond the end count, if they begin inside
                (True or False; False).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCHW').
        """

    @staticmethod
    def max_pool3d(
        x: Operand,
        pool_size: int | Sequence[int] = (1, 1, 1),
        strides: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
    ) -> Tensor:
        """The maximum over sliding windows of 3 spatial axes (NCDHW).

        With `ceil_mode` a last window may stick out at the end, but none starts behind the input
        (R.nn.max_pool3d, ONNX MaxPool, torch). Padding never wins. The result has the dtype of
        `x`, integers included.

        Args:
            pool_size: the extents of a window (an int or a tuple of ints; (1, 1, 1)).
            strides: how far apart windows are, of each axis (an int or a tuple of ints; 1).
            padding: what is added around: one number, one for each axis, or all begins then all
                ends (an int or a tuple of ints; 0).
            dilation: how far apart the taps of a window are, of each axis (an int or a tuple of
                ints; 1).
            ceil_mode: whether windows that reach beyond the end count, if they begin inside
                (True or False; False).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCDHW').
        """

    @staticmethod
    def mish(x: Operand) -> Tensor:
        """``x * tanh(softplus(x))`` (ONNX Mish).

        Elementwise: `x` is a tensor of any shape, of a float dtype; another is
        refused. The result has its shape and its dtype.
        """

    @staticmethod
    def nll_loss(
        predictions: Operand,
        targets: Operand,
        weights: Operand | None = None,
        reduction: str = "mean",
        ignore_index: int = -100,
    ) -> Tensor:
        """The negative log likelihood of targets, ``-weights[t] * predictions[n, t, ...]``.

        Predictions ``(n, classes, ...)`` are log-probabilities, targets ``(n, ...)`` are integers;
        those equal to `ignore_index` count nothing, others are taken as in `R.take`. `reduction`
        is mean (weighted), sum or none (R.nn.nll_loss, torch's nll_loss, ONNX
        NegativeLogLikelihoodLoss).

        Args:
            reduction: mean, sum or none: what becomes of the losses (text; 'mean').
            ignore_index: the class that does not count (an int; -100).
        """

    @staticmethod
    def pad(
        x: Operand,
        pad_width: Dim | Sequence[Dim],
        pad_mode: str = "constant",
        pad_value: float = 0.0,
    ) -> Tensor:
        """Elements added around: `pad_width` is (before, after) of each axis in turn, in one tuple.

        The widths may be dims, and negative ones cut. `pad_mode` is constant (of `pad_value`),
        edge, reflect or wrap (R.nn.pad, ONNX Pad, numpy.pad); reflect and wrap reach the far end at
        most.

        Args:
            pad_width: how much before and behind each axis, two numbers an axis (a dim or a
                tuple of dims).
            pad_mode: constant, edge, reflect or wrap (text; 'constant').
            pad_value: what padding holds (a number; 0.0).
        """

    @staticmethod
    def pixel_shuffle(x: Operand, upscale_factor: int) -> Tensor:
        """``(..., c * r * r, h, w)`` to ``(..., c, h * r, w * r)`` for `upscale_factor` r.

        Channels that follow one another become neighbours (R.nn.pixel_shuffle, ONNX DepthToSpace
        of mode CRD).

        Args:
            upscale_factor: the side of the blocks of pixels that channels become (an int).
        """

    @staticmethod
    def pixel_unshuffle(x: Operand, downscale_factor: int) -> Tensor:
        """``(..., c, h * r, w * r)`` to ``(..., c * r * r, h, w)``, what undoes `nn.pixel_shuffle` (torch's pixel_unshuffle).

        Args:
            downscale_factor: the side of the blocks of pixels that become channels (an int).
        """

    @staticmethod
    def prelu(x: Operand, alpha: Operand, axis: int = 1) -> Tensor:
        """``x`` where ``x >= 0``, else ``alpha[c] * x``, c the index along `axis` (R.nn.prelu).

        `alpha` has shape ``(x.shape[axis],)`` or ``(1,)``.

        Args:
            axis: which axis or axes, negative ones from the end (an int; 1).
        """

    @staticmethod
    def relu(x: Operand) -> Tensor:
        """``max(x, 0)``, NaN stays NaN (R.nn.relu, ONNX Relu). Any dtype but bool."""

    @staticmethod
    def relu6(x: Operand) -> Tensor:
        """``min(max(x, 0), 6)`` (R.nn.relu6, torch's relu6).

        Elementwise: `x` is a tensor of any shape, of an integer or a float dtype; another is
        refused. The result has its shape and its dtype.
        """

    @staticmethod
    def rms_norm(
        x: Operand,
        weight: Operand,
        axes: int | Sequence[int] = -1,
        epsilon: float = 1e-05,
    ) -> Tensor:
        """``x / sqrt(mean(x * x) + epsilon) * weight`` over `axes` (R.nn.rms_norm, ONNX 23).

        Args:
            axes: which axes, negative ones from the end (an int or a tuple of ints; -1).
            epsilon: what is added to the variance (of rms_norm, to the mean square) (a number;
                1e-05).
        """

    @staticmethod
    def selu(
        x: Operand,
        alpha: float = 1.6732632423543772,
        gamma: float = 1.0507009873554805,
    ) -> Tensor:
        """``gamma * elu(x, alpha)`` (R.nn.selu, ONNX Selu).

        Elementwise: `x` is a tensor of any shape, of a float dtype; another is
        refused. The result has its shape and its dtype.

        Args:
            alpha: the factor of what is below 0 (a number; 1.6732632423543772).
            gamma: the factor of all (a number; 1.0507009873554805).
        """

    @staticmethod
    def silu(x: Operand) -> Tensor:
        """``x * sigmoid(x)`` (R.nn.silu, torch silu, swish).

        Elementwise: `x` is a tensor of any shape, of a float dtype; another is
        refused. The result has its shape and its dtype.
        """

    @staticmethod
    def softmax(x: Operand, axis: int = -1) -> Tensor:
        """``exp(x - max) / sum(exp(x - max))`` along `axis`; shape of x (R.nn.softmax, ONNX 13).

        Half-width floats are computed in float32.

        Args:
            axis: which axis or axes, negative ones from the end (an int; -1).
        """

    @staticmethod
    def softplus(x: Operand, beta: float = 1.0) -> Tensor:
        """``log(1 + exp(beta * x)) / beta`` (R.nn.softplus without threshold, ONNX Softplus).

        Elementwise: `x` is a tensor of any shape, of a float dtype; another is
        refused. The result has its shape and its dtype.

        Args:
            beta: how steep it is, not 0 (a number; 1.0).
        """

    @staticmethod
    def softsign(x: Operand) -> Tensor:
        """``x / (1 + |x|)`` (ONNX Softsign, torch's softsign).

        Elementwise: `x` is a tensor of any shape, of a float dtype; another is
        refused. The result has its shape and its dtype.
        """

    @staticmethod
    def thresholdedrelu(x: Operand, alpha: float = 1.0) -> Tensor:
        """``x`` where ``x > alpha``, else 0 (ONNX ThresholdedRelu, torch's threshold).

        Elementwise: `x` is a tensor of any shape, of a float dtype; another is
        refused. The result has its shape and its dtype.

        Args:
            alpha: what is not above it becomes 0 (a number; 1.0).
        """

class vision:
    @staticmethod
    def all_class_non_max_suppression(
        boxes: Operand,
        scores: Operand,
        max_output_boxes_per_class: Operand,
        iou_threshold: Operand,
        score_threshold: Operand | None = None,
        output_format: str = "onnx",
        inclusive: bool = False,
    ) -> Tensor:
        """The boxes of each class that no better one of it covers by more than `iou_threshold`.

        Of `boxes` ``(b, n, 4)``, two opposite corners each, and `scores` ``(b, c, n)`` those above
        `score_threshold` are looked at (all without), and at most `max_output_boxes_per_class` are
        kept; 0 keeps none. With `inclusive` a box is covered by just the threshold, too (as TVM
        has it). The three are single numbers. Gives the image, class and box of each kept,
        ``(selected, 3)``, classes in order, best first, where `selected` is a fresh symbol, and
        ``(1,)`` their number, both int64. With `output_format` "tensorflow" for each image: class
        and box ``(b, c * n, 2)``, int64, scores ``(b, c * n)``, both 0 behind the last, and their
        number ``(b,)``, int64 (R.vision.all_class_non_max_suppression, ONNX NonMaxSuppression).

        Args:
            output_format: 'onnx' or 'tensorflow' (text; 'onnx').
            inclusive: whether a box is covered by just the threshold (True or False; False).
        """

    @staticmethod
    def get_valid_counts(
        data: Operand,
        score_threshold: float = 0.0,
        id_index: int = 0,
        score_index: int = 1,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Boxes whose scores are above `score_threshold` first: their number, they, their places.

        Rows of `data` ``(b, n, k)``, of floats, have the score in column `score_index` and a label
        in `id_index`, which must be 0 or more; -1 if there is none. Gives int32 ``(b,)``, the rows
        in their order and -1 behind them ``(b, n, k)``, and int32 ``(b, n)``, with -1 behind
        (R.vision.get_valid_counts).

        Args:
            score_threshold: what scores must be above (a number; 0.0).
            id_index: in which column a box's label is; -1: there is none (an int; 0).
            score_index: in which column a box's score is (an int; 1).
        """

    @staticmethod
    def multibox_transform_loc(
        cls_pred: Operand,
        loc_pred: Operand,
        anchor: Operand,
        clip: bool = False,
        threshold: float = 0.0,
        variances: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
        keep_background: bool = True,
        apply_softmax: bool = True,
    ) -> tuple[Tensor, Tensor]:
        """Boxes ``(n, k, 4)`` as top, left, bottom, right, and scores, of k anchors.

        `loc_pred` ``(n, 4 k)`` moves the centers of anchors ``(1, k, 4)`` (left, top, right,
        bottom) by x and y and scales them by w and h, each by its variance. Scores ``(n, classes,
        k)`` go through softmax, and those below `threshold` are 0, class 0 as well without
        `keep_background` (R.vision.multibox_transform_loc).

        Args:
            clip: whether corners are limited to 0 and 1 (True or False; False).
            threshold: scores below it are 0 (a number; 0.0).
            variances: what offsets of x, y, w and h are multiplied by (a tuple of numbers;
                (1.0, 1.0, 1.0, 1.0)).
            keep_background: whether the scores of class 0 count (True or False; True).
            apply_softmax: whether scores are taken through softmax first (True or False; True).
        """

    @staticmethod
    def non_max_suppression(
        data: Operand,
        valid_count: Operand,
        indices: Operand,
        max_output_size: int = -1,
        iou_threshold: float = 0.5,
        force_suppress: bool = False,
        top_k: int = -1,
        coord_start: int = 2,
        score_index: int = 1,
        id_index: int = 0,
        return_indices: bool = True,
        invalid_to_bottom: bool = False,
    ) -> Tensor:
        """Boxes without those that a better one of their label covers, by `iou_threshold` or more.

        Of rows ``(b, n, k)``, read as in `vision.get_valid_counts`, with two corners from column
        `coord_start` on, the first `valid_count` ``(b,)`` are looked at, of those the `top_k` with
        the best scores, and at most `max_output_size` are kept; below 1 all are. `force_suppress`:
        boxes cover those of other labels as well. None with a score of 0 or less is kept.

        Gives `indices` ``(b, n)`` of those kept, best first, with -1 behind, int32, and their
        number ``(b, 1)``, int32; without `return_indices` the rows in the order of their scores,
        of -1 where suppressed, which `invalid_to_bottom` puts last (R.vision.non_max_suppression,
        without soft suppression).

        Args:
            max_output_size: how many boxes are kept at most; below 1: all (an int; -1).
            iou_threshold: from which overlap on a box is covered, of 0 to 1 (a number; 0.5).
            force_suppress: whether boxes cover those of other labels as well (True or False;
                False).
            top_k: how many boxes are looked at, the best; below 1: all (an int; -1).
            coord_start: in which column a box's corners begin (an int; 2).
            score_index: in which column a box's score is (an int; 1).
            id_index: in which column a box's label is; -1: there is none (an int; 0).
            return_indices: whether indices and their number are given, else the rows (True or
                False; True).
            invalid_to_bottom: whether rows of -1 come last, where rows are given (True or
                False; False).
        """

    @staticmethod
    def roi_align(
        x: Operand,
        rois: Operand,
        pooled_size: int | Sequence[int],
        spatial_scale: float,
        sample_ratio: int = 2,
        aligned: bool = False,
        layout: str = "NCHW",
        mode: str = "avg",
    ) -> Tensor:
        """Cells of boxes of a feature map ``(n, c, h, w)``, each the mean of points within it.

        Rows of `rois` ``(r, 5)`` are an image's number and left, top, right, bottom, which are
        multiplied by `spatial_scale`; gives ``(r, c, *pooled_size)``. A cell has `sample_ratio`
        squared points, read between pixels; their largest with `mode` "max". Without `aligned`
        boxes are one pixel at least (R.vision.roi_align, whose `sample_ratio` -1 is not
        implemented).

        Args:
            pooled_size: how many cells a box has, along height and width (an int or a tuple of
                ints).
            spatial_scale: what boxes' coordinates are multiplied by to be those of the map (a
                number).
            sample_ratio: how many points a cell has along each axis (an int; 2).
            aligned: whether coordinates are moved by half a pixel; else boxes are one pixel at
                least (True or False; False).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCHW').
            mode: 'avg' or 'max' of a bin's samples (text; 'avg').
        """

    @staticmethod
    def roi_pool(
        x: Operand,
        rois: Operand,
        pooled_size: int | Sequence[int],
        spatial_scale: float,
        layout: str = "NCHW",
    ) -> Tensor:
        """Cells of boxes of a feature map, each the largest pixel in it, as `vision.roi_align`.

        Of a map ``(n, c, h, w)`` and `rois` ``(r, 5)``, multiplied by `spatial_scale`, gives
        ``(r, c, *pooled_size)``. Boxes are rounded to whole pixels; a cell that has none is 0
        (R.vision.roi_pool, ONNX MaxRoiPool).

        Args:
            pooled_size: how many cells a box has, along height and width (an int or a tuple of
                ints).
            spatial_scale: what boxes' coordinates are multiplied by to be those of the map (a
                number).
            layout: the order of the axes: N batch, C channels, D, H, W lines (text; 'NCHW').
        """


__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "bitcast",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "blackman_window",
    "broadcast_to",
    "bucketize",
    "ceil",
    "clip",
    "collapse_sum_like",
    "collapse_sum_to",
    "concat",
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "depth_to_space",
    "dequantize",
    "dims",
    "divide",
    "dynamic_strided_slice",
    "einsum",
    "equal",
    "erf",
    "ewise_fma",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "eye",
    "eye_like",
    "flatten",
    "flip",
    "floor",
    "floor_divide",
    "floor_mod",
    "frames",
    "full",
    "full_like",
    "gather_elements",
    "gather_nd",
    "grad",
    "greater",
    "greater_equal",
    "hamming_window",
    "hann_window",
    "image",
    "index_put",
    "index_tensor",
    "interleave_phases",
    "isfinite",
    "isinf",
    "isnan",
    "item",
    "kept_boxes",
    "layout_transform",
    "left_shift",
    "less",
    "less_equal",
    "linked_tree_ensemble",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_add_exp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "matmul",
    "matmul_interleaved",
    "matmul_packed",
    "matmul_words",
    "max",
    "maximum",
    "mean",
    "median",
    "memory",
    "meshgrid",
    "min",
    "minimum",
    "mod",
    "multinomial_from_uniform",
    "multiply",
    "negative",
    "nn",
    "nonzero",
    "nonzero_static",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "outer",
    "pairwise_coupling",
    "permute_dims",
    "power",
    "prod",
    "quantize",
    "reciprocal",
    "repeat",
    "reshape",
    "reverse_sequence",
    "right_shift",
    "roll",
    "round",
    "rsqrt",
    "scalar_tensor",
    "scatter_elements",
    "scatter_nd",
    "shape_of",
    "shape_to_tensor",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "size",
    "slice_scatter",
    "sort",
    "space_to_depth",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "stretch",
    "strided_slice",
    "subtract",
    "sum",
    "take",
    "tan",
    "tanh",
    "tensor_to_shape",
    "tile",
    "topk",
    "tree_ensemble",
    "tril",
    "triu",
    "trunc",
    "unique",
    "variance",
    "vision",
    "where",
    "zeros",
    "zeros_like",
]
