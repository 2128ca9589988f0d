"""Single nodes of ``com.microsoft`` beside onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
from onnx import helper

from tests.conformance.suite import by_compiler, by_interpreter
from unity.frontend.onnx import from_onnx

Array = npt.NDArray[Any]


def node_model(
    op: str,
    inputs: Sequence[Array | None],
    outputs: Sequence[bool],
    attributes: Mapping[str, Any],
) -> onnx.ModelProto:
    """A model of one node, some of whose inputs and outputs are left out."""
    names = [f"i{k}" if x is not None else "" for k, x in enumerate(inputs)]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in zip(names, inputs, strict=True)
        if x is not None
    ]
    results = [f"o{k}" if wanted else "" for k, wanted in enumerate(outputs)]
    node = helper.make_node(op, names, results, "node", domain="com.microsoft", **attributes)
    made = [helper.make_empty_tensor_value_info(n) for n in results if n]
    graph = helper.make_graph([node], "g", infos, made)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def check(
    op: str,
    inputs: Sequence[Array | None],
    outputs: int = 1,
    *,
    rtol: float = 1e-5,
    quanta: int = 0,
    compared: Sequence[int] | None = None,
    compiled: bool = False,
    **attributes: object,
) -> None:
    """Compare what a node gives with onnxruntime.

    Args:
        op: The operator.
        inputs: What it is given; None leaves one out.
        outputs: How many outputs it has.
        rtol: How far reals may be away, relative to the largest.
        quanta: How far integers may be away.
        compared: Which outputs are asked for, all by default.
        compiled: Whether it is compiled.
        attributes: Of the node.
    """
    asked = [compared is None or k in compared for k in range(outputs)]
    model = node_model(op, inputs, asked, attributes)
    given = [x for x in inputs if x is not None]
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options)
    want = session.run(None, dict(zip((i.name for i in session.get_inputs()), given, strict=True)))
    got = (by_compiler if compiled else by_interpreter)(from_onnx(model), given)
    for k, (ours, theirs) in enumerate(zip(got, want, strict=True)):
        one, other = np.asarray(ours), np.asarray(theirs)
        assert (one.shape, one.dtype) == (other.shape, other.dtype), k
        far = np.abs(one.astype(np.float64) - other.astype(np.float64)).max(initial=0)
        limit = quanta if one.dtype.kind in "iu" else rtol * max(1.0, float(np.abs(other).max()))
        assert far <= limit, (k, far, limit)


def reals(seed: int, *shape: int) -> Array:
    """Normal numbers, float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def whole(seed: int, kind: str, *shape: int) -> Array:
    """Integers over all of uint8, or over int8's middle half.

    Without VNNI onnxruntime adds two products of 8-bit integers in int16, which saturates where
    both factors are large; 255 * 63 * 2 still fits.
    """
    least, most = (0, 255) if kind == "uint8" else (-63, 63)
    rng = np.random.default_rng(seed)
    return rng.integers(least, most + 1, shape).astype(kind)


def scalar(value: float, kind: str = "float32") -> Array:
    """A tensor of no axes."""
    return np.asarray(value, kind)
