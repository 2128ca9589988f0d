"""Parameters to bytes, as scripts save them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unity.errors import UnityError
from unity.frontend.relay.saved.writing import params_bytes
from unity.ir.dtype import Array

from .places import here


def save_param_dict(params: Mapping[str, Array]) -> bytes:
    """A parameter dictionary, which TVM reads as well."""
    return params_bytes({name: np.asarray(value) for name, value in params.items()})


def save_json(_: object) -> str:
    """What TVM wrote as JSON; only read here.

    Raises:
        UnityError: Always.
    """
    raise UnityError("JSON of TVM is read, not written", here(), "mod.astext() holds all of it")
