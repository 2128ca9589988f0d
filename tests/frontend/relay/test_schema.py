"""Attributes of Relay's operators: checked, and complete with defaults."""

import pytest

from unity.errors import UnityError
from unity.frontend.relay.schema import complete, names, signature
from unity.frontend.relay.schema.legacy import upgraded
from unity.frontend.relay.syntax import Attributes
from unity.ir.dtype import dtype


def test_every_operator_has_arguments_and_defaults_of_their_kinds() -> None:
    assert len(names()) > 300
    for name in names():
        found = signature(name)
        assert found is not None
        if found.fields is None or any(field.required for field in found.fields.values()):
            continue
        values = complete(name, {}, len(found.arguments or ()))
        assert values.keys() == found.fields.keys()


def test_defaults_are_filled_in() -> None:
    values = complete("nn.conv2d", {"strides": 2, "out_dtype": "int32"}, 2)
    assert values["strides"] == (2,)
    assert values["padding"] == (0, 0)
    assert values["data_layout"] == "NCHW"
    assert values["out_dtype"] == dtype("int32")
    assert values["channels"] is None


@pytest.mark.parametrize(
    ("operator", "given", "arguments", "message"),
    [
        ("nn.conv2", {}, 2, "Relay has no operator 'nn.conv2'"),
        ("add", {}, 3, "add is called with 3 arguments, it takes 2 (lhs, rhs)"),
        ("nn.relu", {"axis": 1}, 1, "nn.relu has no attribute 'axis'"),
        ("nn.conv2d", {"groups": "two"}, 2, "'groups' of nn.conv2d is 'two', expected an int"),
        ("nn.pad", {"pad_width": (1, 1)}, 2, "expected a list of ints for each dim"),
        ("cast", {"dtype": "posit8"}, 1, "is 'posit8', expected a dtype in quotes"),
        ("clip", {"a_min": 0.0}, 1, "clip needs the attribute 'a_max' (float)"),
        ("split", {"indices_or_sections": (1, None)}, 1, "expected an int or ints"),
    ],
)
def test_calls_that_are_wrong(
    operator: str, given: Attributes, arguments: int, message: str
) -> None:
    with pytest.raises(UnityError) as caught:
        complete(operator, given, arguments)
    assert message in str(caught.value)


def test_older_versions() -> None:
    assert upgraded("nn.pad", {"pad_width": ((1, 1),)}, 1, True).appended == 0.0
    assert upgraded("scatter_add", {}, 3, False).attributes == {"reduction": "add"}
    assert upgraded("nn.batch_matmul", {}, 2, True).attributes == {"transpose_b": True}
    resized = upgraded("image.resize", {"size": (2, 2), "align_corners": True}, 1, True)
    assert resized.operator == "image.resize2d"
    assert resized.attributes["coordinate_transformation_mode"] == "align_corners"
    assert resized.attributes["method"] == "linear"
