"""Quantize an ONNX model: the whole flow on one page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import onnx
from onnx import numpy_helper

from unity.arguments import public
from unity.compiler import compile as compile_model
from unity.errors import UnityError
from unity.ir.dtype import Array

from .batch_norm import fold_batch_norm
from .blocks import four_bit_products, require_block
from .calibration import Method, Observed, Sample, observe, run_all, samples_of
from .model import EditedModel, read_model
from .parameters import Activations, Parameters, of_range
from .placement import place
from .products import Product, find_products
from .report import QuantizationReport, TensorRange, output_errors
from .rewriting import Pairs

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(frozen=True, slots=True)
class QuantizedModel:
    """A quantized model, and what it costs.

    Attributes:
        model: The ONNX model, for `unity.compile`, `unity.load` or onnxruntime.
        report: What was quantized, by which ranges, and errors; printing it shows a table.
    """

    model: ModelProto
    report: QuantizationReport

    def save(self, path: str | Path) -> None:
        """Write the model to a file."""
        onnx.save_model(self.model, str(path))


@public
def quantize(
    model: str | Path | bytes | ModelProto,
    calibration_data: Iterable[object] | None = None,
    *,
    weights: Literal["int8", "int4"] = "int8",
    activations: Activations = "uint8",
    method: Method = "minmax",
    per_channel: bool = True,
    exclude: Sequence[str] = (),
    block: int = 32,
) -> QuantizedModel:
    """Make a quantized ONNX model of one in float32, and measure what that costs.

    Convolutions and products of matrices (Conv, ConvTranspose, Gemm, MatMul) read integers of 8
    bits: activations by the range that they have while the model runs on samples, weights by the
    largest of each output. The model says so by pairs of QuantizeLinear and DequantizeLinear.
    All else stays in float32. With ``weights="int4"`` products of matrices read weights of 4 bits
    and activations as they are.

    Args:
        model: The path of an ONNX model, its bytes, or the model in memory, which is left as it is.
        calibration_data: Inputs like those that the model will get: for each sample a dict of
            arrays by name, a tuple of arrays in the order of inputs, or an array where there is one
            input. Samples are held in memory. With ``weights="int4"`` they are needed only to
            measure errors.
        weights: ``"int8"``, or ``"int4"``: blocks of a column's weights have a scale and a zero
            point each.
        activations: ``"uint8"`` with a zero point, or ``"int8"`` without.
        method: ``"minmax"``: activations from the least to the largest value observed;
            ``"entropy"``: a range that may leave out values far out, if the rest of them is told
            better so.
        per_channel: Whether each output of a product has its own scale of weights.
        exclude: Names of nodes, or types of operators (``"MatMul"``), that stay in float32.
        block: With ``weights="int4"``, how many weights share a scale.

    Returns:
        The model and a report.

    Raises:
        UnityError: The model is ill-formed or quantized already, samples are missing or don't fit,
            `exclude` names nothing that would be quantized, or nothing is left to quantize.
        UnsupportedError: The model uses what Unity does not implement; everything is listed.
    """
    own = read_model(model)
    if weights == "int8" and calibration_data is None:
        raise UnityError(
            "quantize needs calibration_data: ranges of activations are observed on it",
            hint='give inputs like those that the model will get, or weights="int4"',
        )
    require_block(block)
    samples = [] if calibration_data is None else samples_of(calibration_data, own.proto)
    before = _bytes(own.proto)
    fold_batch_norm(own)
    products, left = find_products(own, exclude)
    ranges: tuple[TensorRange, ...] = ()
    if weights == "int4":
        seen = observe(own.proto, (), samples, method) if samples else Observed({}, {}, [])
        left |= four_bit_products(own, products, block)
        products = {n: p for n, p in products.items() if n not in left}
    else:
        everything = dict.fromkeys(place(own, products.values()).values())
        seen = observe(own.proto, everything, samples, method)
        products, others = _of_float32(own, products, seen)
        left |= others
        roots = place(own, products.values())
        found = {r: of_range(*seen.ranges[r], activations) for r in dict.fromkeys(roots.values())}
        excluded = {name for name, why in left.items() if why == "excluded"}
        Pairs(own, products, roots, found, per_channel, excluded).insert()
        ranges = tuple(_row(r, seen, found[r]) for r in dict.fromkeys(roots.values()))
    if not products:
        raise UnityError(
            f"{own.name} has nothing to quantize",
            hint="; ".join(f"{n}: {why}" for n, why in list(left.items())[:5]) or "no products",
        )
    errors = output_errors(seen.outputs, _run(own.proto, samples)) if samples else ()
    report = QuantizationReport(
        tuple(products), left, ranges, errors, len(samples), before, _bytes(own.proto)
    )
    return QuantizedModel(own.proto, report)


def _of_float32(
    model: EditedModel, products: dict[str, Product], seen: Observed
) -> tuple[dict[str, Product], dict[str, str]]:
    """The products whose operands are float32; of others why they are left."""
    nodes = {n.name: n for n in model.graph.node}
    left: dict[str, str] = {}
    for name, product in products.items():
        for at in product.data:
            root = place(model, [product])[nodes[name].input[at]]
            if root in seen.others:
                left[name] = f"operands of {seen.others[root]}"
    return {n: p for n, p in products.items() if n not in left}, left


def _row(name: str, seen: Observed, by: Parameters) -> TensorRange:
    low, high = seen.ranges[name]
    return TensorRange(name, low, high, float(by.scale), int(by.zero))


def _run(proto: onnx.ModelProto, samples: Sequence[Sample]) -> list[dict[str, Array]]:
    return list(run_all(compile_model(proto), samples))


def _bytes(proto: onnx.ModelProto) -> int:
    return sum(numpy_helper.to_array(t).nbytes for t in proto.graph.initializer)
