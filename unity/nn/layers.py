"""Layers: what networks are made of, with the parameters' names and shapes of torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from unity.arguments import public_class
from unity.errors import UnityError

from .module import Module, Parameter
from .value import Value, ops

Sizes: TypeAlias = "int | Sequence[int]"


def require_positive(layer: str, **sizes: int) -> None:
    """Refuse sizes below 1.

    Raises:
        UnityError: One is.
    """
    for name, size in sizes.items():
        if size < 1:
            raise UnityError(f"{layer}: {name} must be at least 1, got {size}")


_CONVOLUTIONS = {1: ops.nn.conv1d, 2: ops.nn.conv2d, 3: ops.nn.conv3d}


@public_class
class Linear(Module):
    """``x @ weight.T + bias`` over the last axis.

    Args:
        inputs: Features in.
        outputs: Features out.
        bias: Whether something is added.
        dtype: Of the parameters.
    """

    def __init__(
        self, inputs: int, outputs: int, bias: bool = True, dtype: str = "float32"
    ) -> None:
        require_positive("Linear", inputs=inputs, outputs=outputs)
        self.weight = Parameter((outputs, inputs), dtype)
        self.bias = Parameter((outputs,), dtype) if bias else None

    def forward(self, x: Value) -> Value:
        """Of a value with `inputs` features in the last axis, as many axes as it has."""
        y = x @ ops.permute_dims(self.weight, (1, 0))
        return y if self.bias is None else y + self.bias


@public_class
class Conv(Module):
    """A convolution of one to three axes behind batch and channels.

    Args:
        inputs: Channels in.
        outputs: Channels out.
        kernel: How many taps along each axis, ``(3, 3)``: as many numbers as there are axes.
        strides: Of the windows.
        padding: Zeros around, by axis.
        dilation: Between taps.
        groups: Channels of different groups don't meet.
        bias: Whether something is added for each channel.
        dtype: Of the parameters.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: Sequence[int],
        strides: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        dtype: str = "float32",
    ) -> None:
        if not 1 <= len(kernel) <= 3:
            raise UnityError(f"kernel={kernel!r}", hint="one to three numbers, one for each axis")
        require_positive("Conv", inputs=inputs, outputs=outputs, groups=groups, kernel=min(kernel))
        if inputs % groups or outputs % groups:
            raise UnityError(f"{inputs} and {outputs} channels are not in {groups} groups")
        self.weight = Parameter((outputs, inputs // groups, *kernel), dtype)
        self.bias = Parameter((outputs,), dtype) if bias else None
        self._options = {
            "strides": strides, "padding": padding, "dilation": dilation, "groups": groups,
        }  # fmt: skip

    def forward(self, x: Value) -> Value:
        """Of (batch, channels, ...)."""
        axes = len(self.weight.shape) - 2
        y = _CONVOLUTIONS[axes](x, self.weight, **self._options)
        if self.bias is None:
            return y
        return y + ops.reshape(self.bias, (1, -1, *(1,) * axes))


@public_class
class BatchNorm(Module):
    """Normalization of channels (axis 1) by means and variances of training.

    Args:
        channels: How many.
        epsilon: Added to variances.
    """

    def __init__(self, channels: int, epsilon: float = 1e-5) -> None:
        require_positive("BatchNorm", channels=channels)
        self.weight = Parameter((channels,))
        self.bias = Parameter((channels,))
        self.running_mean = Parameter((channels,))
        self.running_var = Parameter((channels,))
        self._epsilon = epsilon

    def forward(self, x: Value) -> Value:
        """Of (batch, channels, ...)."""
        given = (self.weight, self.bias, self.running_mean, self.running_var)
        return ops.nn.batch_norm(x, *given, epsilon=self._epsilon)


@public_class
class LayerNorm(Module):
    """Normalization of the last axis.

    Args:
        features: Its size.
        epsilon: Added to variances.
    """

    def __init__(self, features: int, epsilon: float = 1e-5) -> None:
        require_positive("LayerNorm", features=features)
        self.weight = Parameter((features,))
        self.bias = Parameter((features,))
        self._epsilon = epsilon

    def forward(self, x: Value) -> Value:
        """Of as many axes as it has."""
        return ops.nn.layer_norm(x, self.weight, self.bias, epsilon=self._epsilon)


@public_class
class RMSNorm(Module):
    """Division by the root of the mean square of the last axis.

    Args:
        features: Its size.
        epsilon: Added to the mean.
    """

    def __init__(self, features: int, epsilon: float = 1e-5) -> None:
        require_positive("RMSNorm", features=features)
        self.weight = Parameter((features,))
        self._epsilon = epsilon

    def forward(self, x: Value) -> Value:
        """Of as many axes as it has."""
        return ops.nn.rms_norm(x, self.weight, epsilon=self._epsilon)


@public_class
class GroupNorm(Module):
    """Normalization of groups of channels (axis 1).

    Args:
        groups: How many groups.
        channels: How many channels.
        epsilon: Added to variances.
    """

    def __init__(self, groups: int, channels: int, epsilon: float = 1e-5) -> None:
        require_positive("GroupNorm", groups=groups, channels=channels)
        if channels % groups:
            raise UnityError(f"{channels} channels are not in {groups} groups")
        self.weight = Parameter((channels,))
        self.bias = Parameter((channels,))
        self._groups, self._epsilon = groups, epsilon

    def forward(self, x: Value) -> Value:
        """Of (batch, channels, ...)."""
        options = {"num_groups": self._groups, "epsilon": self._epsilon}
        return ops.nn.group_norm(x, self.weight, self.bias, **options)


@public_class
class Embedding(Module):
    """Rows of a table by number.

    Args:
        count: How many rows.
        features: Of each.
        dtype: Of the table.
    """

    def __init__(self, count: int, features: int, dtype: str = "float32") -> None:
        require_positive("Embedding", count=count, features=features)
        self.weight = Parameter((count, features), dtype)

    def forward(self, numbers: Value) -> Value:
        """Of integers of any shape; features are a new last axis."""
        return ops.take(self.weight, numbers, axis=0)
