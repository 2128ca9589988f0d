"""Scatters whose operands' sizes have different names: equal at run time, or told not to be."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import unity
from unity.errors import UnityError
from unity.ir.dtype import Array

from .programs import model

GRAPHS = {
    "elements": """g (float[n, 2] x, int64[a, b] i, float[c, 2] u) => (float[n, 2] y)
     { y = ScatterElements<axis=0>(x, i, u) }""",
    "vectors": """g (float[n, 2] x, int64[a, 1] i, float[c, d] u) => (float[n, 2] y)
     { y = ScatterND(x, i, u) }""",
}


@pytest.mark.parametrize("name", GRAPHS)
def test_sizes_of_other_names_are_equal_at_run_time(name: str) -> None:
    proto = model(GRAPHS[name], 18)
    compiled = unity.compile(proto, cache=None)
    session = ort.InferenceSession(proto.SerializeToString())
    rng = np.random.default_rng(4)
    for n, count in ((6, 3), (5, 5), (4, 0)):
        i = rng.permutation(n)[:count, None]
        i = np.repeat(i, 2, axis=1) if name == "elements" else i
        feeds: dict[str, Array] = {
            "x": rng.standard_normal((n, 2), np.float32),
            "i": i,
            "u": rng.standard_normal((count, 2), np.float32),
        }
        (want,) = session.run(None, feeds)
        np.testing.assert_array_equal(np.asarray(compiled.run(feeds)["y"]), np.asarray(want))
    feeds["u"] = np.zeros((2, 2), np.float32)
    with pytest.raises(UnityError, match="2"):
        compiled.run(feeds)
