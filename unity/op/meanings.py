"""What attributes of operators mean, by name: the part ``Args:`` of operators' docstrings.

An attribute means the same wherever it stands; where an operator means something else by it, the
key names the operator as well, ``"topk.k"``. Types and defaults are those of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc
from textwrap import wrap

from unity.arguments import REQUIRED

from .registry import OpDef, Param, shown_value

_COLUMNS = 88
MEANINGS: Mapping[str, str] = {
    "accumulate": "whether values are added to what is there",
    "algorithm": "how it is computed; None leaves that to the compiler",
    "align_corners": "whether -1 and 1 are the centers of the outermost pixels, else their edges",
    "aligned": (
        "whether coordinates are moved by half a pixel; else boxes are one pixel at least"
    ),
    "alpha": "the factor of what is below 0",
    "hamming_window.alpha": "the constant part",
    "nn.hardsigmoid.alpha": "the slope",
    "nn.leakyrelu.alpha": "the slope below 0",
    "nn.lrn.alpha": "the factor of the mean of squares",
    "nn.thresholdedrelu.alpha": "what is not above it becomes 0",
    "apply_softmax": "whether scores are taken through softmax first",
    "at_least_1d": "whether a tensor without axes counts as one of one element",
    "axes": "which axes, negative ones from the end",
    "permute_dims.axes": "the axis that each axis of the result is; None turns them all around",
    "axis": "which axis or axes, negative ones from the end",
    "batch_axis": "the axis along which the lengths are",
    "batch_dims": "how many axes in front are those of a batch, the same in both operands",
    "begin": "the first index, one for each axis where there are several, or None",
    "hamming_window.beta": "the factor of the cosine",
    "nn.hardsigmoid.beta": "the value at 0",
    "nn.lrn.beta": "the exponent",
    "nn.softplus.beta": "how steep it is, not 0",
    "bias": "what is added to the mean of squares",
    "block": "how many elements along the axis share a scale; 0: those of one index",
    "block_size": "the side of a block of pixels",
    "causal_mask": (
        "'TopLeft': query i sees keys up to i; 'BottomRight': the last query sees all; "
        "'BottomRightAbs': up to i and the difference of the numbers of queries and keys; "
        "None: each sees all"
    ),
    "ceil_mode": "whether windows that reach beyond the end count, if they begin inside",
    "channel_axis": "the axis of the channels",
    "clip": "whether corners are limited to 0 and 1",
    "coord_start": "in which column a box's corners begin",
    "coordinate_transformation_mode": (
        "where an index of the result lies in the image, by ONNX's names"
    ),
    "count_include_pad": "whether padding counts in the mean, as zeros",
    "cubic_alpha": "the coefficient of cubic weights",
    "cubic_exclude": "1: weights outside the image are left out; else 0",
    "data_layout": "the order of the operand's axes: N batch, C channels, D, H, W lines",
    "depth": "the extent of the new axis",
    "descending": "whether the greatest come first",
    "dilation": "how far apart the taps of a window are, of each axis",
    "downscale_factor": "the side of the blocks of pixels that become channels",
    "dtype": "the elements of the result",
    "argsort.dtype": "that of the indices",
    "topk.dtype": "that of the indices",
    "cumprod.dtype": "the elements of the result; None: the operand's",
    "cumsum.dtype": "the elements of the result; None: the operand's",
    "end": (
        "behind the last index, one for each axis where there are several; None: the far end"
    ),
    "arange.end": "where it ends; it is not reached. None: at `start`, and it begins at 0",
    "epsilon": "what is added to the variance (of rms_norm, to the mean square)",
    "exclusive": "whether an element is left out of its own result",
    "extrapolation_value": "what tf_crop_and_resize has outside of `roi`",
    "fill": "what scores are where `mask` is false",
    "fill_value": "what fills places that are left over",
    "first": "the first head of q, k and v in their operands",
    "force_suppress": "whether boxes cover those of other labels as well",
    "format": "the text, with {} for each value",
    "gamma": "the factor of all",
    "groups": "in how many groups channels lie, each convolved by itself",
    "heads": "how many heads are computed; None: all that there are",
    "id_index": "in which column a box's label is; -1: there is none",
    "ignore_index": "the class that does not count",
    "inclusive": "whether a box is covered by just the threshold",
    "index_map": "where each index comes, 'n, c, h, w -> n, c // 4, h, w, c % 4'",
    "indexing": "'ij', or 'xy', with the first two axes of the results the other way round",
    "indices_or_sections": "in how many equal parts, or where each part but the first begins",
    "invalid_to_bottom": "whether rows of -1 come last, where rows are given",
    "iou_threshold": "from which overlap on a box is covered, of 0 to 1",
    "k": "which diagonal, above the main one if positive",
    "topk.k": "how many",
    "keep_background": "whether the scores of class 0 count",
    "keepdims": "whether reduced axes stay, of extent 1",
    "kernel_layout": "the order of the weights' axes: O results, I operands, D, H, W taps",
    "keys": "how many rows of caches are keys; None: all",
    "kv_heads": "how many heads keys and values have; None: as many as queries",
    "largest": "whether the largest, else the smallest",
    "layout": "the order of the axes: N batch, C channels, D, H, W lines",
    "layouts": "the order of the axes of queries, keys, values and the result",
    "m": "how many columns; None: as many as rows",
    "max": "the upper limit; None: there is none",
    "max_output_size": "how many boxes are kept at most; below 1: all",
    "method": "what lies between pixels: nearest, linear (of grids bilinear) or cubic (bicubic)",
    "image.resize2d.method": "nearest_neighbor, linear or cubic",
    "image.resize3d.method": "nearest_neighbor, linear or cubic",
    "min": "the lower limit; None: there is none",
    "depth_to_space.mode": "'DCR' or 'CRD': in which order channels hold the pixels of blocks",
    "vision.roi_align.mode": "'avg' or 'max' of a bin's samples",
    "n": "how many rows",
    "num_groups": "in how many groups channels lie, each normalized by itself",
    "out_dtype": "the elements of the result; None: the operands'",
    "quantize.out_dtype": "the integers, or small floats, of the result",
    "dequantize.out_dtype": "the floats of the result",
    "out_int32": "whether indices are int32, else int64",
    "output_format": "'onnx' or 'tensorflow'",
    "output_padding": "what is added at the end of each axis of the result, less than the stride",
    "output_size": "the extents of the result; None keeps one",
    "pad_mode": "constant, edge, reflect or wrap",
    "pad_value": "what padding holds",
    "pad_width": "how much before and behind each axis, two numbers an axis",
    "padding": (
        "what is added around: one number, one for each axis, or all begins then all ends"
    ),
    "padding_mode": "what is outside: zeros, border or reflection",
    "periodic": "whether the window goes on from its end at its begin, else it is symmetric",
    "pool_size": "the extents of a window",
    "pooled_size": "how many cells a box has, along height and width",
    "rate": "the part that is dropped when a model is trained, of 0 to 1",
    "reduction": "mean, sum or none: what becomes of the losses",
    "scatter_elements.reduction": "how updates join what is there: update, add, mul, min, max",
    "scatter_nd.reduction": "how updates join what is there: update, add, mul, min, max",
    "repeats": "how often, one number or one for each axis",
    "repeat.repeats": "how often each element",
    "return_counts": "whether the result tells how often each value is there",
    "return_index": "whether the result tells where each value is first",
    "return_indices": "whether indices and their number are given, else the rows",
    "return_inverse": "whether the result tells which value each element is",
    "reverse": "whether it goes from the end",
    "right": "whether boundaries equal to an element count",
    "roi": "the part that tf_crop_and_resize takes, begins then ends, as parts of the extents",
    "rounding_method": "how nearest_neighbor rounds, by ONNX's names",
    "sample_ratio": "how many points a cell has along each axis",
    "scale": "what scores are multiplied by; None: 1 / sqrt(the extent of a head)",
    "score_index": "in which column a box's score is",
    "score_threshold": "what scores must be above",
    "seq_axis": "the axis that is reversed",
    "shift": "how far, negative towards the front",
    "size": "how many neighbours",
    "sorted": "whether values are in order; else as they come first",
    "spatial_scale": "what boxes' coordinates are multiplied by to be those of the map",
    "start": "where it begins; its end, where there is no other",
    "step": "how far apart elements are, not 0",
    "stride": "how far apart indices are",
    "strides": "how far apart windows are, of each axis",
    "strided_slice.strides": "how far apart indices are, one for each axis; None: 1",
    "subscripts": "which letter is which axis, 'bij,bjk->bik'",
    "threshold": "scores below it are 0",
    "top_k": "how many boxes are looked at, the best; below 1: all",
    "upscale_factor": "the side of the blocks of pixels that channels become",
    "variances": "what offsets of x, y, w and h are multiplied by",
    "window_size": "how many elements",
    "nn.attention_bias.window_size": (
        "how many of the last keys that the causal mask leaves a query sees; None: all"
    ),
    "nn.attention_var_len.window_size": (
        "how many of the last keys that the causal mask leaves a query sees; None: all"
    ),
    "zero_unseen": "whether a row of which `bias` leaves nothing gives 0, else NaN",
    "arange.dtype": "the elements of the result; None: int64, or float32 if a bound is a float",
    "full_like.dtype": "the elements of the result; None: the operand's",
    "ones_like.dtype": "the elements of the result; None: the operand's",
    "zeros_like.dtype": "the elements of the result; None: the operand's",
    "eye_like.dtype": "the elements of the result; None: the operand's",
    **{
        f"nn.conv{rank}d_transpose.{attribute}": meaning
        for rank in (1, 2, 3)
        for attribute, meaning in {
            "strides": "how far apart the operand's elements are put, of each axis",
            "padding": "what is cut off: one number, one for each axis, all begins then all ends",
            "kernel_layout": "the order of the weights' axes: I operands, O results, D, H, W taps",
        }.items()
    },
}  # fmt: skip
"""What an attribute means, or what an operator means by it."""


def meaning_of(op: str, attribute: str) -> str | None:
    """What an operator means by an attribute; None where nothing is said."""
    return MEANINGS.get(f"{op}.{attribute}", MEANINGS.get(attribute))


def docstring_of(row: OpDef) -> str:
    """What ``help`` shows of an operator: what it computes, then its attributes.

    >>> from unity.op.table import OPS
    >>> print(docstring_of(OPS["tril"]))
    The lower triangle ``j <= i + k`` of the last two axes.
    <BLANKLINE>
    Args:
        k: which diagonal, above the main one if positive (a dim; 0).
    """
    found = [_line(row.name, p) for p in row.params if p.kind == "attr"]
    said = [line for line in found if line is not None]
    text = cleandoc(row.doc)
    lines = [part for line in said for part in wrap(line, _COLUMNS, subsequent_indent=" " * 8)]
    return "\n".join([text, "", "Args:", *lines]) if said else text


def _line(op: str, param: Param) -> str | None:
    meaning = meaning_of(op, param.name)
    if meaning is None:
        return None
    assert param.type is not None, param
    default = "" if param.default is REQUIRED else f"; {shown_value(param.default)}"
    return f"    {param.name}: {meaning} ({param.type.words}{default})."
