"""Operators: one file per family, each op's rows (type, compute, reference, samples) together.

`unity.op.table.OPS` is all of them; `unity.op.infer` types any graph expression; `unity.op.call`
builds calls from Python values; `unity.op.builder` builds whole graph functions.
"""
