"""TVM's spelling of types in our language is refused, and says ours."""

from __future__ import annotations

import pytest

from unity import script
from unity.errors import UnityError
from unity.script import Buffer, Tensor


@pytest.mark.parametrize(("kind", "ours"), [(Tensor, "f32[Tensor, n, 4]"), (Buffer, "f32[Buffer,")])
def test_called_by_python(kind: type, ours: str) -> None:
    with pytest.raises(UnityError, match="is TVM's spelling of a type") as caught:
        kind(("n", 4), "float32")
    assert ours in (caught.value.hint or "")


def test_called_in_a_text() -> None:
    text = '@script.function\ndef main(x: R.Tensor((4,), "float32")):\n    return x\n'
    with pytest.raises(UnityError, match=r"R.Tensor\(...\) is TVM's spelling") as caught:
        script.parse(text)
    assert caught.value.span is not None
    assert "f32[Tensor, n, 4]" in (caught.value.hint or "")
