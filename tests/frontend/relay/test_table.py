"""Every operator of Relay is either translated or refused by name, with the reason."""

from __future__ import annotations

from tests.frontend.relay import operator_table
from unity.frontend.relay.operators.refused import REFUSED
from unity.frontend.relay.operators.table import CONVERTERS, FAMILIES
from unity.frontend.relay.schema import names


def test_every_operator_is_translated_or_refused_with_a_reason() -> None:
    assert sorted([*CONVERTERS, *REFUSED]) == sorted(names())
    assert len(CONVERTERS) >= 261
    assert all(REFUSED.values())


def test_no_operator_has_two_converters() -> None:
    assert sum(len(family) for family in FAMILIES) == len(CONVERTERS)


def test_the_operators_of_real_models_are_translated() -> None:
    """Those of the published files: classifiers, detectors, a transformer, an LSTM."""
    real = """add reshape multiply nn.conv2d transpose nn.relu nn.batch_norm nn.dense sigmoid
        expand_dims concatenate tanh divide sqrt nn.bias_add mean split nn.batch_matmul power
        negative subtract squeeze nn.leaky_relu strided_slice nn.dropout maximum minimum nn.softmax
        nn.layer_norm nn.global_avg_pool2d nn.max_pool2d nn.batch_flatten take nn.pad less where
        nn.avg_pool2d nn.upsampling stack copy nn.lrn clip nn.log_softmax nn.conv1d erf"""
    assert set(real.split()) <= set(CONVERTERS)


def test_the_table_of_the_guide_is_that_of_the_converters() -> None:
    anew = "python -m tests.frontend.relay.operator_table"
    assert operator_table.FILE.read_text() == operator_table.text(), f"write it anew: {anew}"
