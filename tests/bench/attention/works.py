"""What is measured: attention as exporters write it, and as ONNX's operator of that name.

Heads lie one behind the other, (b, h, s, d), or side by side in each token, (b, s, h * d), as a
model's projections leave them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.bench.timing import Run
from tests.bench.work import Array, Feeds
from unity.ir.arrays.aligned import LINE

Mask = Literal["none", "causal", "padding", "float", "bool"]
"""What a query doesn't see: nothing; later keys; the ends of short ones; what a matrix says."""


@dataclass(frozen=True, slots=True)
class Attention:
    """One attention.

    Attributes:
        batch: How many at once.
        heads: Of the queries.
        length: Of the queries.
        depth: Of a head.
        keys: The length of keys and values.
        shared: Heads of keys and values; so many that each serves several queries' heads.
        strided: Whether heads lie side by side in each token.
        op: Whether it is ONNX's operator, of version 23, rather than products and a softmax.
        mask: What is not seen.
    """

    batch: int
    heads: int
    length: int
    depth: int
    keys: int
    shared: int
    strided: bool = False
    op: bool = False
    mask: Mask = "none"

    @property
    def name(self) -> str:
        """What the table calls it."""
        kind = "op" if self.op else "graph"
        layout = "strided" if self.strided else "heads"
        heads = f"{self.heads}" if self.shared == self.heads else f"{self.heads}:{self.shared}"
        length = f"{self.length}" if self.keys == self.length else f"{self.length}:{self.keys}"
        mask = "" if self.mask == "none" else f" {self.mask}"
        return f"{kind} {layout} b{self.batch} h{heads} s{length} d{self.depth}{mask}"

    def model(self, known: bool) -> onnx.ModelProto:
        """The model, of fixed sizes or of unknown batch and lengths."""
        sizes: dict[str, int | str] = {"b": self.batch, "s": self.length, "t": self.keys}
        if not known:
            sizes = {"b": "b", "s": "s", "t": "s" if self.keys == self.length else "t"}
        given = [
            helper.make_tensor_value_info(
                name,
                TensorProto.BOOL if self.mask == "bool" and name == "mask" else TensorProto.FLOAT,
                [sizes[x] if isinstance(x, str) else x for x in shape],
            )
            for name, shape in self._inputs().items()
        ]
        rank = 3 if self.strided else 4
        result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * rank)
        nodes, held = self._operator() if self.op else self._graph()
        graph = helper.make_graph(nodes, "attention", given, [result], held)
        opset = helper.make_opsetid("", 23 if self.op else 18)
        return helper.make_model(graph, opset_imports=[opset], ir_version=10)

    def feeds(self) -> Feeds:
        """Seeded inputs, at lines of memory as what a model computes."""
        rng = np.random.default_rng(0)
        sizes = {"b": self.batch, "s": self.length, "t": self.keys}
        found: Feeds = {}
        for name, shape in self._inputs().items():
            whole = [sizes[x] if isinstance(x, str) else x for x in shape]
            values = rng.standard_normal(whole, np.float32)
            if name != "mask":
                found[name] = values
                continue
            seen = values < 1.0
            seen[..., 0] = True
            hidden = np.where(seen, np.float32(0), np.float32(-1e4))
            found[name] = seen if self.mask == "bool" else hidden.astype(np.float32)
        return {name: _at_a_line(x) for name, x in found.items()}

    def peers(self, threads: int, feeds: Feeds) -> dict[str, Run]:
        """Torch's attention, which reads heads where they lie."""
        if not find_spec("torch"):
            return {}
        torch: Any = import_module("torch")
        torch.set_num_threads(threads)
        q, k, v = (torch.from_numpy(feeds[n]) for n in "qkv")
        if self.strided:
            q, k, v = (
                x.view(x.shape[0], x.shape[1], -1, self.depth).transpose(1, 2) for x in (q, k, v)
            )
        mask = torch.from_numpy(feeds["mask"]) if "mask" in feeds else None
        attention = partial(
            torch.nn.functional.scaled_dot_product_attention,
            q, k, v, mask, is_causal=self.mask == "causal", enable_gqa=self.shared != self.heads,
        )  # fmt: skip

        def run() -> Any:
            with torch.inference_mode():
                return attention()

        return {"torch": run}

    def _inputs(self) -> dict[str, tuple[int | str, ...]]:
        """The shape of each; names stand for sizes that may be unknown."""
        inputs: dict[str, tuple[int | str, ...]] = {}
        for name, length, heads in (
            ("q", "s", self.heads),
            ("k", "t", self.shared),
            ("v", "t", self.shared),
        ):
            apart = ("b", heads, length, self.depth)
            inputs[name] = ("b", length, heads * self.depth) if self.strided else apart
        if self.mask == "padding":
            inputs["mask"] = ("b", 1, 1, "t")
        elif self.mask in ("float", "bool"):
            inputs["mask"] = (1, 1, "s", "t")
        return inputs

    def _operator(self) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
        attrs: dict[str, Any] = {"is_causal": 1} if self.mask == "causal" else {}
        if self.strided:
            attrs |= {"q_num_heads": self.heads, "kv_num_heads": self.shared}
        return [helper.make_node("Attention", [*self._inputs()], ["y"], **attrs)], []

    def _graph(self) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
        held: dict[str, Array] = {"scale": np.array(self.depth**-0.5, np.float32)}
        nodes: list[onnx.NodeProto] = []

        def add(kind: str, *inputs: str, **attrs: Any) -> str:
            nodes.append(helper.make_node(kind, [*inputs], [f"t{len(nodes)}"], **attrs))
            return f"t{len(nodes) - 1}"

        q, k, v = "q", "k", "v"
        across = [0, 1, 3, 2]
        if self.strided:
            held["by_heads"] = np.array([0, 0, -1, self.depth], np.int64)
            q, k, v = (add("Reshape", x, "by_heads") for x in (q, k, v))
            q, v = (add("Transpose", x, perm=[0, 2, 1, 3]) for x in (q, v))
            across = [0, 2, 3, 1]
        scores = add("MatMul", q, add("Transpose", k, perm=across))
        scores = add("Mul", scores, "scale")
        if self.mask == "bool":
            held["hidden"] = np.array(-1e4, np.float32)
            scores = add("Where", "mask", scores, "hidden")
        elif self.mask != "none":
            scores = add("Add", scores, "mask")
        found = add("MatMul", add("Softmax", scores, axis=-1), v)
        if self.strided:
            held["flat"] = np.array([0, 0, -1], np.int64)
            found = add("Reshape", add("Transpose", found, perm=[0, 2, 1, 3]), "flat")
        nodes[-1].output[0] = "y"
        return nodes, [numpy_helper.from_array(x, n) for n, x in held.items()]


def _at_a_line(x: Array) -> Array:
    room = np.empty(x.nbytes + LINE, np.uint8)
    begin = -room.ctypes.data % LINE
    found: Array = room[begin : begin + x.nbytes].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


def _works() -> Iterator[Attention]:
    for strided in (False, True):
        for heads, depth in ((12, 32), (8, 40), (12, 64), (8, 80), (8, 96), (8, 128), (4, 256)):
            yield Attention(1, heads, 384, depth, 384, heads, strided)
        for length in (16, 64, 128, 512, 1024, 2048):
            yield Attention(1, 12, length, 64, length, 12, strided)
        yield Attention(8, 12, 128, 64, 128, 12, strided, mask="padding")
        yield Attention(1, 8, 1024, 40, 77, 8, strided)
        yield Attention(1, 6, 1500, 64, 1500, 6, strided)
        yield Attention(64, 3, 49, 32, 49, 3, strided)
    masks: tuple[Mask, ...] = ("padding", "float", "bool")
    for mask in masks:
        yield Attention(1, 12, 384, 64, 384, 12, strided=True, mask=mask)
    for strided in (False, True):
        for depth, length in ((64, 16), (64, 128), (64, 512), (64, 2048), (128, 512)):
            yield Attention(1, 8, length, depth, length, 8, strided, op=True, mask="causal")
        for mask in (*masks[1:], "none"):
            yield Attention(1, 8, 384, 64, 384, 8, strided, op=True, mask=mask)
        for heads, shared, length, depth in ((32, 8, 128, 64), (16, 4, 512, 128)):
            yield Attention(1, heads, length, depth, length, shared, strided, True, "causal")
        for past, heads, shared, depth in (
            (128, 32, 8, 64), (512, 12, 12, 64), (2048, 32, 8, 128),
        ):  # fmt: skip
            yield Attention(1, heads, 1, depth, past, shared, strided, op=True)
    yield Attention(1, 12, 1, 64, 128, 12)
    yield Attention(1, 12, 1, 64, 2048, 12, strided=True)


ATTENTION = {work.name: work for work in _works()}
"""By name."""
