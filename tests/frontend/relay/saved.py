"""Files as TVM saves them, made without it: tensors, parameter dictionaries, JSON of objects."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
_CODES = {"i": 0, "u": 1, "f": 2, "b": 1}


def tensor(array: Array) -> bytes:
    """A tensor as ``SaveDLTensor`` writes it."""
    bits = 1 if array.dtype == np.bool_ else array.dtype.itemsize * 8
    head = struct.pack("<QQii", 0xDD5E40F096B4A13F, 0, 1, 0)
    kind = struct.pack("<iBBH", array.ndim, _CODES[array.dtype.kind], bits, 1)
    shape = struct.pack(f"<{array.ndim}q", *array.shape)
    return head + kind + shape + struct.pack("<q", array.nbytes) + array.tobytes()


def parameters(arrays: Mapping[str, Array]) -> bytes:
    """A parameter dictionary."""
    names = [struct.pack("<Q", len(n.encode())) + n.encode() for n in arrays]
    head = struct.pack("<QQQ", 0xF7E58D4F05049CB7, 0, len(arrays)) + b"".join(names)
    return head + struct.pack("<Q", len(arrays)) + b"".join(map(tensor, arrays.values()))


class Graph:
    """A graph of objects under construction; `add` gives the number of an object."""

    def __init__(self, version: str = "0.18.0") -> None:
        self.nodes: list[dict[str, object]] = [{"type_key": ""}]
        self.arrays: list[str] = []
        self.version = version

    def add(self, key: str, **fields: object) -> int:
        """An object with fields."""
        node: dict[str, object] = {"type_key": key}
        if fields:
            node["attrs"] = {name: str(value) for name, value in fields.items()}
        self.nodes.append(node)
        return len(self.nodes) - 1

    def array(self, *items: int) -> int:
        """An array of objects."""
        self.nodes.append({"type_key": "Array", "data": list(items)})
        return len(self.nodes) - 1

    def map(self, *items: int) -> int:
        """A map from objects: keys and values in turn."""
        self.nodes.append({"type_key": "Map", "data": list(items)})
        return len(self.nodes) - 1

    def named(self, **items: int) -> int:
        """A map from strings."""
        values = list(items.values())
        self.nodes.append({"type_key": "Map", "keys": list(items), "data": values})
        return len(self.nodes) - 1

    def text(self, key: str, text: str) -> int:
        """An object that says something itself: an operator, a string."""
        self.nodes.append({"type_key": key, "repr_str": text})
        return len(self.nodes) - 1

    def ints(self, *values: int) -> int:
        """An array of ints."""
        return self.array(*(self.add("IntImm", dtype="int32", value=v) for v in values))

    def tensor_type(self, shape: tuple[int, ...], dtype: str = "float32") -> int:
        """A tensor's type."""
        return self.add("relay.TensorType", shape=self.ints(*shape), dtype=dtype, span=0)

    def var(self, name: str, shape: tuple[int, ...]) -> int:
        """A variable."""
        vid = self.add("relay.Id", name_hint=self.text("runtime.String", name))
        return self.add("relay.Var", vid=vid, type_annotation=self.tensor_type(shape))

    def constant(self, value: Array) -> int:
        """A constant."""
        self.arrays.append(base64.b64encode(tensor(value)).decode())
        return self.add("relay.Constant", data=len(self.arrays) - 1)

    def call(self, op: str, *arguments: int, attrs: int = 0) -> int:
        """A call of an operator."""
        return self.add(
            "relay.Call",
            op=self.text("Op", op),
            args=self.array(*arguments),
            attrs=attrs,
            type_args=self.array(),
        )

    def module(self, params: tuple[int, ...], body: int) -> int:
        """A module of one function."""
        function = self.add(
            "relay.Function",
            params=self.array(*params),
            body=body,
            ret_type=0,
            type_params=self.array(),
            attrs=0,
        )
        main = self.add("GlobalVar", name_hint=self.text("runtime.String", "main"))
        return self.add("IRModule", functions=self.map(main, function), type_definitions=0)

    def saved(self, root: int) -> str:
        """The JSON."""
        return json.dumps(
            {
                "root": root,
                "nodes": self.nodes,
                "b64ndarrays": self.arrays,
                "attrs": {"tvm_version": self.version},
            },
            indent=1,
        )


def metadata(constants: list[Array]) -> str:
    """The metadata section of a text."""
    graph = Graph()
    held = graph.array(*(graph.constant(c) for c in constants))
    graph.nodes.append({"type_key": "Map", "keys": ["relay.Constant"], "data": [held]})
    return "\n#[metadata]\n" + graph.saved(len(graph.nodes) - 1)
