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
    "nn.conv3d_blocked", "nn.conv2d_interleaved", "nn.conv2d_winograd",
    "nn.conv3d_winograd", "nn.cache_append",
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


_SWAPPED = "{R}.permute_dims({x}, (0, 2, 1))"
_OF_LISTS = {"append": "{x} = [*{x}, y]", "extend": "{x} = [*{x}, *ys]"}
"""Methods of Python's lists, which are tuples of a graph."""
METHODS = {
    "T": "{R}.permute_dims({x})", "t": "{R}.permute_dims({x})", "mT": _SWAPPED,
    "permute": "{R}.permute_dims({x}, (1, 0))", "transpose": "{R}.permute_dims({x}, (1, 0))",
    "swapaxes": _SWAPPED, "movedim": _SWAPPED, "moveaxis": _SWAPPED,
    "view": "{R}.reshape({x}, (2, -1))", "reshape": "{R}.reshape({x}, (2, -1))",
    "ravel": "{R}.flatten({x})", "numel": "{R}.size({x})", "nelement": "{R}.size({x})",
    "size": "{x}.shape, {x}.shape[0]", "dim": "{x}.ndim", "ndimension": "{x}.ndim",
    "to": "{R}.astype({x}, 'float16')", "type": "{R}.astype({x}, 'float16')",
    "astype": "{R}.astype({x}, 'float16')", "float": "{R}.astype({x}, 'float32')",
    "double": "{R}.astype({x}, 'float64')", "half": "{R}.astype({x}, 'float16')",
    "bfloat16": "{R}.astype({x}, 'bfloat16')", "int": "{R}.astype({x}, 'int32')",
    "long": "{R}.astype({x}, 'int64')", "bool": "{R}.astype({x}, 'bool')",
    "unsqueeze": "{R}.expand_dims({x}, 0)", "squeeze": "{R}.squeeze({x}, 0)",
    "expand": "{R}.broadcast_to({x}, (2, 4))", "expand_as": "{R}.broadcast_to({x}, y.shape)",
    "repeat": "{R}.tile({x}, (2, 1))", "repeat_interleave": "{R}.repeat({x}, 2, axis=0)",
    "clamp": "{R}.clip({x}, 0.0, 1.0)", "clamp_min": "{R}.maximum({x}, 0.0)",
    "clamp_max": "{R}.minimum({x}, 1.0)", "pow": "{x} ** 2.0", "neg": "-{x}",
    "add": "{x} + y", "sub": "{x} - y", "mul": "{x} * y", "div": "{x} / y",
    "matmul": "{x} @ y", "mm": "{x} @ y", "bmm": "{x} @ y", "dot": "{x} @ y",
    "eq": "{x} == y", "ne": "{x} != y", "lt": "{x} < y", "le": "{x} <= y", "gt": "{x} > y",
    "ge": "{x} >= y", "masked_fill": "{R}.where(mask, 0.0, {x})",
    "chunk": "{R}.split({x}, 2, axis=0)", "split": "{R}.split({x}, 2, axis=0)",
    "gather": "{R}.gather_elements({x}, indices, axis=0)",
    "index_select": "{R}.take({x}, indices, axis=0)",
    "scatter": "{R}.scatter_elements({x}, indices, updates, axis=0)",
    "var": "{R}.variance({x}, axis=0)", "argsort": "{R}.argsort({x}, axis=-1)",
    "sum": "{R}.sum({x}, axis=0)", "mean": "{R}.mean({x}, axis=0)",
    "max": "{R}.max({x}, axis=0)", "min": "{R}.min({x}, axis=0)",
    "amax": "{R}.max({x}, axis=0)", "amin": "{R}.min({x}, axis=0)",
    "argmax": "{R}.argmax({x}, axis=0)", "argmin": "{R}.argmin({x}, axis=0)",
    "softmax": "{R}.nn.softmax({x}, axis=-1)", "norm": "{R}.sqrt({R}.sum({x} * {x}))",
    "new_zeros": "{R}.zeros((2, 4), 'float32')", "new_ones": "{R}.ones((2, 4), 'float32')",
}  # fmt: skip
"""How programs write what methods and attributes of torch's tensors and numpy's arrays say."""

_LEFT_OUT = {
    **dict.fromkeys(
        ("contiguous", "detach", "clone", "copy", "requires_grad_"),
        "leave it out: values of a graph don't change, and lie in order",
    ),
    **dict.fromkeys(("cpu", "cuda", "device"), "leave it out: programs run on one CPU"),
    **dict.fromkeys(("numpy", "tolist"), "what the compiled program returns is an array"),
    **dict.fromkeys(("backward", "grad", "requires_grad"), "training is not implemented"),
}
"""What to do about the others."""


def instead_of_method(name: str, x: str, operators: str) -> str | None:
    """How a program writes a method or an attribute of torch's tensors or numpy's arrays.

    Args:
        name: The method's; ``add_`` is ``add`` in place.
        x: The tensor, as it is written.
        operators: What operators' names stand behind: ``R``, ``ops``.

    Returns:
        A hint; None where nothing is known of that name.

    >>> instead_of_method("view", "x", "R")
    'write it as in R.reshape(x, (2, -1))'
    >>> instead_of_method("relu_", "x", "ops")
    "write it as in x = ops.nn.relu(x): values don't change"
    >>> instead_of_method("contiguous", "x", "R")
    "leave it out: values of a graph don't change, and lie in order"
    >>> instead_of_method("append", "ys", "R")
    'write it as in ys = [*ys, y]'
    """
    if name in _LEFT_OUT:
        return _LEFT_OUT[name]
    plain = name.rstrip("_")
    ours = next((n for n in (plain, f"nn.{plain}") if n in OPS), None)
    said = {**METHODS, **_OF_LISTS}.get(plain) or (f"{{R}}.{ours}({{x}})" if ours else None)
    if said is None:
        return None
    written = said.format(x=x, R=operators)
    if plain != name:
        return f"write it as in {x} = {written}: values don't change"
    return f"write it as in {written}"


OTHERS = frozenset({*OURS, *_NO_RELAX, *_ONNX, *_TORCH})
"""All that the tables above name, which is to be operators."""
