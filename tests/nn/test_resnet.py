"""A ResNet of unity.nn: compiled as interpreted, and as torch computes it with its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unity
from unity.interpreter import interpret
from unity.script import Tensor, dim, f32

from .resnet import ResNet

RNG = np.random.default_rng(0)
IMAGES = {"x": f32[Tensor, dim("n", min=1), 3, 32, 24]}


def numbers(model: ResNet) -> None:
    """Some for each parameter; variances are positive."""
    model.initialize(scale=0.3)
    for name, parameter in model.named_parameters():
        if name.endswith("running_var"):
            parameter.set(RNG.uniform(0.5, 2, parameter.shape).astype(np.float32))


def test_a_network_of_images_is_compiled_as_it_is_interpreted() -> None:
    model = ResNet()
    numbers(model)
    assert "layers.1.downsample.0.weight" in dict(model.named_parameters())
    module = model.export(IMAGES)
    x = RNG.standard_normal((2, 3, 32, 24), np.float32)
    expected = np.asarray(interpret(module, "main", [x]))
    np.testing.assert_allclose(unity.compile(module)(x), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.torch
def test_numbers_of_torch_are_loaded_by_its_names() -> None:
    import torch

    class Block(torch.nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.conv1 = torch.nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = torch.nn.BatchNorm2d(outputs)
            self.conv2 = torch.nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = torch.nn.BatchNorm2d(outputs)
            self.downsample = None
            if stride != 1 or inputs != outputs:
                around = torch.nn.Conv2d(inputs, outputs, 1, stride, bias=False)
                self.downsample = torch.nn.Sequential(around, torch.nn.BatchNorm2d(outputs))

        def forward(self, x: Any) -> Any:
            around = x if self.downsample is None else self.downsample(x)
            return torch.relu(self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))) + around)

    class Theirs(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = torch.nn.Conv2d(3, 8, 7, 2, 3, bias=False)
            self.bn1 = torch.nn.BatchNorm2d(8)
            self.layers = torch.nn.ModuleList([Block(8, 8, 1), Block(8, 16, 2)])
            self.fc = torch.nn.Linear(16, 10)

        def forward(self, x: Any) -> Any:
            y = torch.nn.functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 3, 2, 1)
            for layer in self.layers:
                y = layer(y)
            return self.fc(y.mean((2, 3)))

    torch.manual_seed(0)
    theirs = Theirs().eval()
    ours = ResNet()
    state = {k: v.numpy() for k, v in theirs.state_dict().items() if "num_batches" not in k}
    ours.load(state)
    x = RNG.standard_normal((2, 3, 32, 24), np.float32)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(x)).numpy()
    exe = unity.compile(ours.export(IMAGES))
    np.testing.assert_allclose(exe(x), expected, rtol=1e-3, atol=1e-4)
