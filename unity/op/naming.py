"""What ONNX, Relax and torch call our operators: a table by our name, for whoever comes from there.

The documentation reads it, and tests compare it with what those packages have. An operator of ONNX
that computes exactly ours stands in the row instead (`OpDef.onnx`), by which it is imported.
"""

from __future__ import annotations

from dataclasses import dataclass

from unity.op.table import OPS


@dataclass(frozen=True, slots=True)
class Names:
    """Names of one operator elsewhere; None where there is none.

    Attributes:
        onnx: ONNX's operator of this meaning, perhaps with attributes or operands of its own.
        relax: Relax's name, behind ``R.``.
        torch: torch's name, behind ``torch.``.
    """

    onnx: str | None = None
    relax: str | None = None
    torch: str | None = None


OURS = frozenset({
    "dims", "matmul_interleaved", "matmul_words", "matmul_packed", "nn.conv2d_blocked",
    "nn.conv3d_blocked", "nn.conv2d_interleaved", "nn.conv2d_winograd", "nn.cache_append",
    "interleave_phases", "frames", "stretch", "kept_boxes", "pairwise_coupling", "tree_ensemble",
    "linked_tree_ensemble", "memory.alloc_arena", "memory.view", "memory.alloc_tensor",
    "memory.call_kernel", "memory.reshape_view",
})  # fmt: skip
"""Operators that passes and importers make, which nobody else names."""

_NO_RELAX = frozenset({
    "reciprocal", "exp2", "expm1", "log2", "log10", "log1p", "any", "all", "bitcast",
    "nonzero_static", "nn.lrn", "nn.elu", "nn.hardsigmoid", "nn.hardswish", "nn.mish",
    "depth_to_space", "space_to_depth", "logsumexp", "roll", "nn.pixel_unshuffle",
    "hann_window", "blackman_window", "scalar_tensor", "item", "nn.celu", "nn.softsign",
    "nn.thresholdedrelu", "nn.logsigmoid", "nn.adaptive_max_pool1d", "nn.adaptive_max_pool2d",
    "nn.adaptive_max_pool3d",
})  # fmt: skip
"""Of the others, those that Relax lacks; it calls the rest as we do."""

_ONNX = {
    "image.resize2d": "Resize", "image.resize3d": "Resize", "image.affine_grid": "AffineGrid",
    "image.grid_sample": "GridSample", "vision.roi_align": "RoiAlign",
    "vision.roi_pool": "MaxRoiPool", "unique": "Unique",
    "vision.all_class_non_max_suppression": "NonMaxSuppression", "nn.attention_bias": "Attention",
    "size": "Size", "eye_like": "EyeLike", "nn.dropout": "Dropout",
    "hamming_window": "HammingWindow", "hann_window": "HannWindow",
    "blackman_window": "BlackmanWindow",
    "einsum": "Einsum", "nn.pixel_shuffle": "DepthToSpace", "nn.pixel_unshuffle": "SpaceToDepth",
    "reverse_sequence": "ReverseSequence", "nn.batch_flatten": "Flatten",
    "logsumexp": "ReduceLogSumExp", "nn.nll_loss": "NegativeLogLikelihoodLoss",
    "isinf": "IsInf", "clip": "Clip", "mod": "Mod", "floor_mod": "Mod", "left_shift": "BitShift",
    "right_shift": "BitShift", "sum": "ReduceSum", "prod": "ReduceProd", "max": "ReduceMax",
    "min": "ReduceMin", "mean": "ReduceMean", "full": "ConstantOfShape",
    "zeros": "ConstantOfShape", "ones": "ConstantOfShape", "arange": "Range", "tril": "Trilu",
    "triu": "Trilu", "bitcast": "BitCast", "astype": "Cast", "quantize": "QuantizeLinear",
    "dequantize": "DequantizeLinear", "shape_of": "Shape", "argmax": "ArgMax",
    "argmin": "ArgMin", "nonzero": "NonZero", "matmul": "MatMul", "nn.conv1d": "Conv",
    "nn.conv2d": "Conv", "nn.conv3d": "Conv", "nn.conv1d_transpose": "ConvTranspose",
    "nn.conv2d_transpose": "ConvTranspose", "nn.conv3d_transpose": "ConvTranspose",
    "nn.max_pool1d": "MaxPool", "nn.max_pool2d": "MaxPool", "nn.max_pool3d": "MaxPool",
    "nn.avg_pool1d": "AveragePool", "nn.avg_pool2d": "AveragePool", "nn.avg_pool3d": "AveragePool",
    "nn.batch_norm": "BatchNormalization", "nn.layer_norm": "LayerNormalization",
    "nn.rms_norm": "RMSNormalization", "nn.group_norm": "GroupNormalization",
    "nn.instance_norm": "InstanceNormalization", "nn.lrn": "LRN", "nn.gelu": "Gelu",
    "nn.gelu_tanh": "Gelu", "nn.silu": "Swish", "nn.leakyrelu": "LeakyRelu", "nn.prelu": "PRelu",
    "nn.elu": "Elu", "nn.celu": "Celu", "nn.thresholdedrelu": "ThresholdedRelu",
    "nn.adaptive_max_pool1d": "GlobalMaxPool", "nn.adaptive_max_pool2d": "GlobalMaxPool",
    "nn.adaptive_max_pool3d": "GlobalMaxPool", "nn.adaptive_avg_pool1d": "GlobalAveragePool",
    "nn.adaptive_avg_pool2d": "GlobalAveragePool", "nn.adaptive_avg_pool3d": "GlobalAveragePool",
    "dynamic_strided_slice": "Slice", "nn.selu": "Selu", "nn.softplus": "Softplus",
    "nn.hardsigmoid": "HardSigmoid", "nn.softmax": "Softmax", "nn.log_softmax": "LogSoftmax",
    "nn.attention": "Attention", "reshape": "Reshape", "flatten": "Flatten",
    "expand_dims": "Unsqueeze", "squeeze": "Squeeze", "permute_dims": "Transpose",
    "depth_to_space": "DepthToSpace", "space_to_depth": "SpaceToDepth", "tile": "Tile",
    "broadcast_to": "Expand", "concat": "Concat", "stack": "ConcatFromSequence",
    "split": "Split", "nn.pad": "Pad", "strided_slice": "Slice", "take": "Gather",
    "gather_elements": "GatherElements", "gather_nd": "GatherND", "one_hot": "OneHot",
    "scatter_elements": "ScatterElements", "scatter_nd": "ScatterND", "cumsum": "CumSum",
    "cumprod": "CumProd", "topk": "TopK",
}  # fmt: skip
"""ONNX's names where the row has none."""

_TORCH: dict[str, str | None] = {
    "image.resize2d": "nn.functional.interpolate", "image.resize3d": "nn.functional.interpolate",
    "image.affine_grid": "nn.functional.affine_grid",
    "image.grid_sample": "nn.functional.grid_sample", "vision.roi_align": None,
    "vision.roi_pool": None, "vision.get_valid_counts": None,
    "vision.non_max_suppression": None, "vision.all_class_non_max_suppression": None,
    "vision.multibox_transform_loc": None,
    "nn.attention_bias": "nn.functional.scaled_dot_product_attention",
    "size": "numel", "eye_like": None,
    "nn.batch_flatten": None, "reverse_sequence": None, "index_tensor": "Tensor.__getitem__",
    "multinomial_from_uniform": "multinomial",
    "log_add_exp": "logaddexp", "ewise_fma": None, "collapse_sum_to": "Tensor.sum_to_size",
    "collapse_sum_like": None, "nn.cross_entropy_with_logits": None,
    "mod": "fmod", "floor_mod": "remainder", "power": "pow", "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift", "variance": "var", "bitcast": "Tensor.view",
    "astype": "Tensor.to", "quantize": "quantize_per_channel", "dequantize": "dequantize",
    "shape_of": "Tensor.size", "tensor_to_shape": None, "shape_to_tensor": None,
    "nn.conv1d_transpose": "nn.functional.conv_transpose1d",
    "nn.conv2d_transpose": "nn.functional.conv_transpose2d",
    "nn.conv3d_transpose": "nn.functional.conv_transpose3d",
    "nn.lrn": "nn.functional.local_response_norm", "nn.gelu_tanh": "nn.functional.gelu",
    "nn.thresholdedrelu": "nn.functional.threshold", "dynamic_strided_slice": None,
    "nn.attention_var_len": None, "grad.take_backward": None, "grad.nll_loss_backward": None,
    "grad.avg_pool2d_backward": None, "grad.max_pool2d_backward": None,
    "nn.leakyrelu": "nn.functional.leaky_relu",
    "nn.attention": "nn.functional.scaled_dot_product_attention", "expand_dims": "unsqueeze",
    "permute_dims": "permute", "depth_to_space": "nn.functional.pixel_shuffle",
    "space_to_depth": "nn.functional.pixel_unshuffle", "repeat": "repeat_interleave",
    "strided_slice": "narrow", "gather_elements": "gather", "gather_nd": None,
    "one_hot": "nn.functional.one_hot", "scatter_elements": "scatter", "scatter_nd": "index_put",
    "item": "Tensor.item", "take": "index_select", "print": None, "assert_op": None,
    "layout_transform": None,
}  # fmt: skip
"""torch's names where they aren't ours; those of ``nn`` are usually in ``nn.functional``."""


def names_of(name: str) -> Names:
    """What others call an operator.

    >>> names_of("permute_dims")
    Names(onnx='Transpose', relax='permute_dims', torch='permute')
    >>> names_of("nn.softmax").torch
    'nn.functional.softmax'
    >>> names_of("matmul_packed")
    Names(onnx=None, relax=None, torch=None)
    """
    row = OPS[name]
    if name in OURS:
        return Names(row.onnx)
    usual = f"nn.functional.{name[3:]}" if name.startswith("nn.") else name
    return Names(
        row.onnx or _ONNX.get(name),
        None if name in _NO_RELAX else name,
        _TORCH.get(name, usual),
    )


OTHERS = frozenset({*OURS, *_NO_RELAX, *_ONNX, *_TORCH})
"""All that the tables above name, which is to be operators."""
