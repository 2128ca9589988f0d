"""Models of operator sets before those that are read: converted by the package onnx.

Its converter leaves alone what PRelu's slopes meant before operator set 7 (a number a channel, not
one along the last axis), so they are reshaped first.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper, shape_inference, version_converter

from unity.errors import UnsupportedError

from .graphs import describe


def converted(proto: onnx.ModelProto, version: int, target: int, name: str) -> onnx.ModelProto:
    """A model of an early operator set as one of a later.

    Args:
        proto: The model, which is left as it is.
        version: Its operator set.
        target: The later one.
        name: What to call the model.

    Raises:
        UnsupportedError: ONNX's converter can't.
    """
    own = onnx.ModelProto()
    own.CopyFrom(proto)
    try:
        _shape_slopes(own, name)
        return version_converter.convert_version(own, target)
    except UnsupportedError:
        raise
    except Exception as error:  # the C++ side raises several kinds
        raise UnsupportedError(
            f"{name} uses opset {version}, which onnx.version_converter can't bring to {target}",
            [str(error)],
        ) from error


def _shape_slopes(proto: onnx.ModelProto, name: str) -> None:
    """Give PRelu's slopes an axis of extent 1 for each axis behind the channels."""
    graph = proto.graph
    if all(node.op_type != "PRelu" for node in graph.node):
        return
    typed = shape_inference.infer_shapes(proto).graph
    ranks = {
        i.name: len(i.type.tensor_type.shape.dim)
        for i in (*typed.input, *typed.value_info)
        if i.type.tensor_type.HasField("shape")
    }
    nodes = list(graph.node)
    del graph.node[:]
    for at, node in enumerate(nodes):
        if node.op_type == "PRelu" and len(node.input) == 2:
            if node.input[0] not in ranks:
                raise UnsupportedError(
                    f"{name} can't be converted", [f"{describe(node)} of a value of unknown rank"]
                )
            shape, slopes = f"unity_slopes_shape_{at}", f"unity_slopes_{at}"
            axes = [-1, *(1,) * (ranks[node.input[0]] - 2)]
            graph.initializer.append(numpy_helper.from_array(np.asarray(axes, np.int64), shape))
            graph.input.append(
                helper.make_tensor_value_info(shape, onnx.TensorProto.INT64, [len(axes)])
            )  # an initializer is an input, too, in such models
            graph.node.append(helper.make_node("Reshape", [node.input[1], shape], [slopes]))
            node.input[1] = slopes
        graph.node.append(node)
