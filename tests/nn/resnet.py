"""A classifier of images, as ResNet is: small, of unity.nn alone, with torch's names."""

from __future__ import annotations

from unity import nn


class Block(nn.Module):
    """Two convolutions beside what goes on."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        self.conv1 = nn.Conv(inputs, outputs, (3, 3), strides=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm(outputs)
        self.conv2 = nn.Conv(outputs, outputs, (3, 3), padding=1, bias=False)
        self.bn2 = nn.BatchNorm(outputs)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or inputs != outputs:
            around = nn.Conv(inputs, outputs, (1, 1), strides=stride, bias=False)
            self.downsample = nn.Sequential(around, nn.BatchNorm(outputs))

    def forward(self, x: nn.Value) -> nn.Value:
        y = nn.ops.nn.relu(self.bn1(self.conv1(x)))
        around = x if self.downsample is None else self.downsample(x)
        return nn.ops.nn.relu(self.bn2(self.conv2(y)) + around)


class ResNet(nn.Module):
    """Scores of classes for images (batch, 3, height, width)."""

    def __init__(self, widths: tuple[int, ...] = (8, 16), classes: int = 10) -> None:
        self.conv1 = nn.Conv(3, widths[0], (7, 7), strides=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm(widths[0])
        before = (widths[0], *widths)
        self.layers = [
            Block(before[k], width, stride=1 if k == 0 else 2) for k, width in enumerate(widths)
        ]
        self.fc = nn.Linear(widths[-1], classes)

    def forward(self, x: nn.Value) -> nn.Value:
        y = nn.ops.nn.relu(self.bn1(self.conv1(x)))
        y = nn.ops.nn.max_pool2d(y, (3, 3), strides=2, padding=1)
        for layer in self.layers:
            y = layer(y)
        return self.fc(nn.ops.mean(y, axis=(2, 3)))
