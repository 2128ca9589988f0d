"""Operators: a folder a subject, a file a family, each op's rows together.

Rows are types, computes, references and samples.

`unity.op.table.OPS` is all of them; `unity.op.infer` types any graph expression; `unity.op.call`
builds calls from Python values; `unity.op.builder` builds whole graph functions.
"""
