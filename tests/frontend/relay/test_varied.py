"""Each attribute of each translated operator is compared with numpy at more than its default."""

from __future__ import annotations

import pytest

from tests.frontend.relay.varied import missing

SAID_BY_OPERANDS = {
    "debug": "debug_func",  # a function of Python's
    "dyn.broadcast_to": "dtype shape",
    "dyn.full": "shape",
    "dyn.image.resize2d": "extrapolation_value roi size",
    "dyn.nn.pad": "pad_value pad_width",
    "dyn.nn.upsampling": "scale_h scale_w",
    "dyn.nn.upsampling3d": "scale_d scale_h scale_w",
    "dyn.one_hot": "depth",
    "dyn.ones": "shape",
    "dyn.reshape": "newshape",
    "dyn.squeeze": "axis",
    "dyn.strided_slice": "axes begin end strides",
    "dyn.tile": "reps",
    "dyn.topk": "k",
    "dyn.zeros": "shape",
    "nn.pad": "pad_value",  # of versions before 0.8, made an operand by `upgraded`
    "nn.sparse_transpose": "kernel_size layout",  # of the convolution behind it
}
"""Attributes that say nothing that the operands don't."""
REFUSED = {
    "contrib_reverse_reshape": "allowzero reverse",
    "dyn.reshape": "reverse",
    "image.resize3d": "extrapolation_value roi",  # of crops, which are refused of volumes
    "nn.correlation": "layout",
    "nn.sparse_conv2d": "kernel_size",
    "reshape": "reverse",
    "vision.multibox_transform_loc": "keep_background",
}
"""Attributes of which one value alone is taken; others are refused by name."""


@pytest.mark.parametrize("table", ["unknown", "needless"])
def test_no_attribute_is_left_at_its_default(table: str) -> None:
    """But for those in the tables above, of which none is needless."""
    found = {(n, a) for n, attributes in missing().items() for a in attributes}
    listed = {
        (n, a) for known in (SAID_BY_OPERANDS, REFUSED) for n, v in known.items() for a in v.split()
    }
    left = found - listed if table == "unknown" else listed - found
    assert not left, "python -m tests.frontend.relay.varied lists what no case varies"
