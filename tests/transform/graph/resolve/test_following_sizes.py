"""The sizes that follow from those of a function's inputs."""

from __future__ import annotations

from unity.ir.dims import dim
from unity.ir.graph import Function
from unity.script import parse
from unity.transform.graph.resolve.following_sizes import following_sizes

PROGRAM = """
n = dim("n")
k = dim("k")
m = dim("m")
c = dim("c")

@script.function
def main(x: f32[Tensor, n, 4]) -> f32[Tensor, k, 4]:
    both = R.add(R.dims((n, 3), dtype="int64"), R.const([1, 2], "int64"))
    said = R.match_cast(R.tensor_to_shape(both), R.Shape(k, m))
    found = R.match_cast(R.nonzero(x), i64[Tensor, 2, c])
    return R.zeros((k, 4), dtype="float32")
"""


def test_what_small_tensors_say_is_known_and_what_data_says_is_not() -> None:
    main = parse(PROGRAM)["main"]
    assert isinstance(main, Function)
    n, k, m = dim("n"), dim("k"), dim("m")
    assert following_sizes(main, {n: 64}) == {n: 64, k: 65, m: 5}
    assert following_sizes(main, {}) == {}
