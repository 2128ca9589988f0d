"""Graph-executor bundles (``.json`` beside ``.params`` and a library): recognized, and refused.

Their graph names compiled kernels (``tvmgen_default_fused_nn_conv2d_add``) with shapes and dtypes;
the operators' attributes are in the library alone, so there is no model left to read.
"""

from __future__ import annotations

import json

from unity.errors import UnityError


def is_bundle(data: bytes) -> bool:
    """Whether this JSON is a graph of the graph executor."""
    return b'"node_row_ptr"' in data or (b'"arg_nodes"' in data and b'"heads"' in data)


def refuse_bundle(name: str, data: bytes, saving: str) -> UnityError:
    """The error that says what a bundle holds, and what to save instead; to be raised."""
    try:
        graph = json.loads(data)
        nodes = graph["nodes"]
        kernels = sorted({n["attrs"]["func_name"] for n in nodes if n["op"] == "tvm_op"})
    except (ValueError, KeyError, TypeError, RecursionError):
        return UnityError(f"{name} is a damaged graph of the graph executor", hint=saving)
    shown = ", ".join(str(k)[:80] for k in kernels[:5]) + (", ..." if len(kernels) > 5 else "")
    return UnityError(
        f"{name} is a compiled graph of the graph executor: it names kernels of the library beside "
        f"it ({shown}), not operators with their attributes",
        hint=saving,
    )
