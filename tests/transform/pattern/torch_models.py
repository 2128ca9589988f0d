"""Small models with seeded weights, as ONNX files that torch's exporter writes."""

from __future__ import annotations

import io
import warnings
from typing import Any

import onnx
import torch
from torch import Tensor, nn


class TransformerBlock(nn.Module):
    """Attention and two layers around a gelu, each after a normalization."""

    def __init__(self, approximate: str, masked: bool) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(32, 32) for _ in range(4))
        self.before, self.between = nn.LayerNorm(32), nn.LayerNorm(32)
        self.wide, self.narrow = nn.Linear(32, 64), nn.Linear(64, 32)
        self.gelu, self.masked = nn.GELU(approximate=approximate), masked

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        y = self.before(x)
        q, k, v = (p(y).reshape(batch, length, 4, 8).transpose(1, 2) for p in self.products())
        mask = torch.ones(5, 5).tril().log() if self.masked else None
        a = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.o(a.transpose(1, 2).reshape(batch, length, 32))
        result: Tensor = x + self.narrow(self.gelu(self.wide(self.between(x))))
        return result

    def products(self) -> tuple[nn.Module, ...]:
        """Those in front of attention."""
        return self.q, self.k, self.v


class ResidualBlock(nn.Module):
    """Two convolutions, and what was before added."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(8, 8, 3, padding=1) for _ in range(2))
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.second(torch.relu(self.norm(self.first(x)))) + x)


class Products(nn.Module):
    """Two products by constants; what the first reads is read once more."""

    def __init__(self) -> None:
        super().__init__()
        self.v = nn.Parameter(torch.randn(16, 32))
        self.w = nn.Parameter(torch.randn(32, 8))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(x @ self.v) @ self.w + x.mean()


def transformer() -> onnx.ModelProto:
    """Two blocks: gelu by erf without a mask, gelu by tanh with one."""
    torch.manual_seed(0)
    whole = nn.Sequential(TransformerBlock("none", False), TransformerBlock("tanh", True))
    return _exported(whole, torch.randn(2, 5, 32))


def residual() -> onnx.ModelProto:
    """A convolution and three blocks."""
    torch.manual_seed(0)
    blocks = [ResidualBlock() for _ in range(3)]
    return _exported(
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), *blocks), torch.randn(1, 3, 12, 12)
    )


def products() -> onnx.ModelProto:
    """To be quantized."""
    torch.manual_seed(0)
    return _exported(Products(), torch.randn(4, 16))


def _exported(module: nn.Module, example: Tensor) -> onnx.ModelProto:
    file: Any = io.BytesIO()  # torch takes one, but does not say so
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this exporter is the older one
        torch.onnx.export(
            module.eval(),
            (example,),
            file,
            opset_version=14,
            dynamo=False,
            input_names=["x"],
            dynamic_axes={"x": {0: "batch"}},
        )
    return onnx.load_from_string(file.getvalue())
