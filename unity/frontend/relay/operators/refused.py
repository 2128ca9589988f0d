"""Operators that are refused, each with the reason."""

from __future__ import annotations

_TRAINING = "a gradient, which inference does not need"
_RANDOM = "its bits are those of TVM's own generator"
_LOWERED = "made by TVM's lowering: save the module before relay.build"
_BACKEND = "made for one backend by a pass: save the module before it"
_WINOGRAD = "half of a convolution that a pass took apart: save the module before it"
_SPARSE = "made for one kernel on GPUs by a pass: save the module before it"
_BITS = "packed bits, made by TVM's lowering: save the module before relay.build"

REFUSED: dict[str, str] = {
    "nn.max_pool2d_grad": _TRAINING,
    "nn.avg_pool2d_grad": _TRAINING,
    "nn.conv2d_backward_weight": _TRAINING,
    "random.threefry_generate": _RANDOM,
    "random.threefry_split": _RANDOM,
    "random.uniform": _RANDOM,
    "random.normal": _RANDOM,
    "random.multinomial": _RANDOM,
    "call_lowered": _LOWERED,
    "vm.invoke_tvm_op": _LOWERED,
    "vm.reshape_tensor": _LOWERED,
    "memory.alloc_storage": _LOWERED,
    "memory.alloc_tensor": _LOWERED,
    "memory.kill": _LOWERED,
    "auto_scheduler_layout_transform": _BACKEND,
    "meta_schedule_layout_transform": _BACKEND,
    **{
        f"contrib.ethosu.{name}": "made for Arm's Ethos-U alone"
        for name in (
            "binary_elementwise",
            "conv2d",
            "depthwise_conv2d",
            "identity",
            "pooling",
            "unary_elementwise",
        )
    },
    "nn.contrib_conv2d_winograd_without_weight_transform": _WINOGRAD,
    "nn.contrib_conv2d_winograd_weight_transform": _WINOGRAD,
    "nn.contrib_conv3d_winograd_without_weight_transform": _WINOGRAD,
    "nn.contrib_conv3d_winograd_weight_transform": _WINOGRAD,
    "nn.contrib_conv2d_winograd_nnpack_weight_transform": _WINOGRAD,
    "nn.contrib_conv2d_gemm_without_weight_transform": _WINOGRAD,
    "nn.contrib_conv2d_gemm_weight_transform": _WINOGRAD,
    "nn.internal.sparse_dense_padded": _SPARSE,
    "nn.bitpack": _BITS,
    "annotation.bitpack_start": _BITS,
    "annotation.bitpack_end": _BITS,
    "torch_op": "a Python function of torch, which no file holds",
    "qnn.contrib_dense_pack": _BACKEND,
    "memory.shape_func": _LOWERED,
    "vm.shape_func": _LOWERED,
    "parser.MetaRef": "what a text names and does not hold: save it by astext(show_meta_data=True)",
}
"""By name. An operator in neither this table nor that of converters is not Relay's, or unknown."""
