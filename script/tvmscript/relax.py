"""Relax's operators whose parameters are not ours: names, order, defaults, what Unity lacks.

Operators of the same name that are not here take the same in both; `tests/script/relax_defaults.py`
compares all of them with TVM itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from .foreign import ANY, ANY_FLAG, ANY_NUMBER, ANY_TEXT, Foreign, foreign

_NONE: tuple[object, ...] = (None,)
_DATA: Mapping[str, str] = {"data": "x"}
_EXPR: Mapping[str, str] = {"expr": "x"}
_NORM: Mapping[str, str] = {"center": ANY, "scale": ANY}  # `norms`
_RANKS = ((1, "W"), (2, "HW"), (3, "DHW"))


def _each(value: str, rank: int) -> str:
    """A value for each spatial axis, as a signature says it."""
    return f"({', '.join([value] * rank)}{',' if rank == 1 else ''})"


def _convolution(rank: int, axes: str, transposed: bool) -> Foreign:
    one, zero = ("1", "0") if rank == 1 else (_each("1", rank), _each("0", rank))
    name = f"R.nn.conv{rank}d{'_transpose' if transposed else ''}"
    out = f"output_padding={zero}, " if transposed else ""
    kernel = f"IO{axes}" if transposed else f"OI{axes}"
    return foreign(
        f"{name}(data, weight, strides={one}, padding={zero}, {out}dilation={one}, groups=1,"
        f' data_layout="NC{axes}", kernel_layout="{kernel}", out_layout=None, out_dtype=None)',
        _DATA,
        {"out_layout": (None, "", f"NC{axes}")},
    )


def _pool(kind: str, rank: int, axes: str) -> Foreign:
    """Means count what is padded but in two dimensions, as in TVM; greatest values never do."""
    counts = kind == "avg" and rank != 2
    one, pads = _each("1", rank), _each("0", max(rank, 2) if rank < 3 else 3)
    same: dict[str, tuple[object, ...] | str] = {"out_layout": (None, "", f"NC{axes}")}
    if kind == "max":
        same["count_include_pad"] = ANY_FLAG
    text = (
        f"R.nn.{kind}_pool{rank}d(data, pool_size={one}, strides={one}, padding={pads},"
        f" dilation={one}, ceil_mode=False, count_include_pad={counts}, layout='NC{axes}',"
        " out_layout=None)"
    )
    return (
        foreign(text, _DATA, same, count_include_pad=True) if counts else foreign(text, _DATA, same)
    )


RELAX: tuple[Foreign, ...] = (
    foreign('R.argsort(data, axis=-1, descending=False, dtype="int32")', _DATA, dtype="int32"),
    foreign(
        'R.topk(data, k=1, axis=-1, ret_type="both", largest=True, dtype="int32")',
        _DATA,
        {"ret_type": ANY_TEXT},  # which of both: `CallRewriter`
        k=1,
        dtype="int32",
    ),
    foreign('R.take(x, indices, axis=None, mode="fast")', same={"mode": ANY}),  # `results`
    foreign("R.clip(x, min, max)"),
    *(
        foreign(f"R.{name}(data, axis=None, dtype=None, exclusive=False)", _DATA)
        for name in ("cumsum", "cumprod")
    ),
    *(
        foreign(f'R.{name}(data, scale, zero_point, axis=-1, out_dtype="{kind}")', _DATA)
        for name, kind in (("quantize", "int8"), ("dequantize", "float32"))
    ),
    *(
        foreign(
            f"R.image.resize{rank}d(data, size, roi=None, layout='NC{axes}', method='linear', "
            f"coordinate_transformation_mode='half_pixel', rounding_method='{rounding}', "
            "cubic_alpha=-0.75, cubic_exclude=0, extrapolation_value=0.0, out_dtype=None)",
            _DATA,
        )
        for rank, axes, rounding in ((2, "HW", "round"), (3, "DHW", ""))
    ),
    foreign("R.image.affine_grid(data, size, align_corners=True)", _DATA),
    foreign(
        'R.image.grid_sample(data, grid, method="bilinear", layout="NCHW", padding_mode="zeros",'
        " align_corners=False)",
        _DATA,
    ),
    foreign(
        "R.vision.roi_align(data, rois, pooled_size, spatial_scale, sample_ratio=-1,"
        ' aligned=False, layout="NCHW", mode="avg")',
        _DATA,
        sample_ratio=-1,
    ),
    foreign('R.vision.roi_pool(data, rois, pooled_size, spatial_scale, layout="NCHW")', _DATA),
    foreign(
        "R.vision.all_class_non_max_suppression(boxes, scores, max_output_boxes_per_class,"
        ' iou_threshold, score_threshold, output_format="onnx")',
        inclusive=True,
    ),
    foreign(
        "R.vision.non_max_suppression(data, valid_count, indices, max_output_size=-1,"
        " iou_threshold=0.5, force_suppress=False, top_k=-1, coord_start=2, score_index=1,"
        " id_index=0, return_indices=True, invalid_to_bottom=False, soft_nms_sigma=0.0,"
        " score_threshold=0.0)",
        same={"soft_nms_sigma": (0.0,), "score_threshold": (0.0,)},
    ),
    *(
        foreign(
            f"R.grad.{kind}_pool2d_backward(output_grad, data, pool_size=(1, 1), strides=(1, 1),"
            " padding=(0, 0, 0, 0), dilation=(1, 1), ceil_mode=False, count_include_pad=False,"
            ' layout="NCHW", out_layout=None)',
            same={
                "out_layout": (None, "", "NCHW"),
                **({"count_include_pad": ANY_FLAG} if kind == "max" else {}),
            },
        )
        for kind in ("max", "avg")
    ),
    foreign("R.flip(data, axis)", _DATA),
    foreign("R.one_hot(indices, on_value, off_value, depth, axis=-1)"),
    foreign("R.nonzero(x)", at_least_1d=True),
    foreign("R.median(x, axis=None, keepdims=False)"),
    foreign("R.index_tensor(data, indices)", _DATA),
    foreign("R.index_put(data, indices, values, accumulate=False)", _DATA),
    foreign(
        "R.bucketize(input_tensor, boundaries, out_int32=False, right=False)",
        {"input_tensor": "x"},
    ),
    foreign("R.collapse_sum_like(data, collapse_target)", {**_DATA, "collapse_target": "like"}),
    foreign("R.collapse_sum_to(data, shape)", _DATA),
    foreign("R.reverse_sequence(data, seq_lengths, seq_axis=1, batch_axis=0)", _DATA),
    foreign("R.hamming_window(window_size, periodic, alpha, beta, dtype)"),
    foreign("R.size(expr)", _EXPR),
    foreign("R.nn.dropout(data, rate=0.5)", _DATA),
    foreign("R.nn.pixel_shuffle(data, upscale_factor)", _DATA),
    *(foreign(f"R.nn.{name}(data)", _DATA) for name in ("batch_flatten", "relu6")),
    foreign("R.gather_elements(data, indices, axis=0)", _DATA),
    foreign("R.gather_nd(data, indices, batch_dims=0)", _DATA),
    foreign('R.scatter_elements(data, indices, updates, axis=0, reduction="update")', _DATA),
    foreign('R.scatter_nd(data, indices, updates, reduction="update")', _DATA),
    foreign("R.matmul(x1, x2, out_dtype=None)"),
    foreign("R.ones(shape, dtype)"),
    foreign("R.zeros(shape, dtype)"),
    foreign("R.repeat(data, repeats, axis=None)", _DATA),
    foreign("R.tile(data, repeats)", _DATA),
    foreign("R.shape_of(expr)", _EXPR),
    foreign("R.tensor_to_shape(expr)", _EXPR),
    foreign("R.shape_to_tensor(expr)", {"expr": "shape"}),
    foreign(
        "R.slice_scatter(input_tensor, src, start, end, step, axis=0)",
        {"input_tensor": "x", "src": "update", "start": "begin", "step": "stride"},
    ),
    foreign(
        "R.strided_slice(x, axes, begin, end, strides=None, assume_inbound=False)",
        same={"assume_inbound": ANY_FLAG},
    ),
    *(
        foreign(f"R.nn.{name}(data)", _DATA)
        for name in ("gelu", "gelu_tanh", "relu", "selu", "silu")
    ),
    *(foreign(f"R.nn.{name}(data, axis=-1)", _DATA) for name in ("softmax", "log_softmax")),
    foreign("R.nn.leakyrelu(data, alpha=0.01)", _DATA),
    foreign("R.nn.prelu(data, alpha, axis=1)", _DATA),
    foreign("R.nn.softplus(data, beta=1.0, threshold=20.0)", _DATA, {"threshold": (20.0,)}),
    foreign('R.nn.pad(data, pad_width, pad_mode="constant", pad_value=0.0)', _DATA),
    foreign(
        "R.nn.attention(query, key, value, bias=None, scale=None, causal_mask=None,"
        " window_size=None)",
        {"query": "q", "key": "k", "value": "v"},
        {"window_size": _NONE},
    ),
    foreign(
        "R.nn.layer_norm(data, gamma, beta, axes, epsilon=1e-5, center=True, scale=True)",
        _DATA,
        _NORM,
    ),
    foreign("R.nn.rms_norm(data, weight, axes=-1, epsilon=1e-5)", _DATA),
    foreign(
        "R.nn.batch_norm(data, gamma, beta, moving_mean, moving_var, axis, epsilon=1e-5,"
        " center=True, scale=True, momentum=0.1, training=True)",
        {"data": "x", "moving_mean": "mean", "moving_var": "variance"},
        {**_NORM, "training": ANY, "momentum": ANY_NUMBER},
    ),
    *(
        foreign(
            f"R.nn.{name}, epsilon=1e-5, center=True, scale=True)",
            _DATA,
            {**_NORM, "axes": ANY},
        )
        for name in (
            "group_norm(data, gamma, beta, num_groups, channel_axis, axes",
            "instance_norm(data, gamma, beta, channel_axis, axes",
        )
    ),
    *(_convolution(rank, axes, turned) for rank, axes in _RANKS for turned in (False, True)),
    *(_pool(kind, rank, axes) for rank, axes in _RANKS for kind in ("max", "avg")),
    *(
        foreign(
            f"R.nn.adaptive_avg_pool{rank}d(data, output_size=None, layout='NC{axes}',"
            " out_layout=None)",
            _DATA,
            {"out_layout": (None, "", f"NC{axes}")},
        )
        for rank, axes in _RANKS
    ),
)
