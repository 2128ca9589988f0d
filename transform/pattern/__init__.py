"""Patterns over graph functions: what to look for, and where it is found.

>>> from unity.script import parse
>>> from unity.transform.pattern import any_, find, op, optional
>>> module = parse('''
... @script.function
... def main(x: f32[Tensor, 4, 8], w: f32[Tensor, 8, 2], b: f32[Tensor, 2]) -> f32[Tensor, 4, 2]:
...     with R.dataflow():
...         y = R.nn.relu(R.add(b, R.matmul(x, w)))
...     return y
... ''')
>>> dense = op("matmul", any_("x"), any_("w")) + any_("bias")
>>> (match,) = find(optional(dense, lambda y: op("nn.relu", y)), module["main"])
>>> match.root.name, match["bias"].name, len(match.inner)
('y', 'b', 2)
"""

from .graph import Graph
from .match import Match, MatchTest, find, match_at
from .nodes import (
    Any,
    Const,
    Either,
    Field,
    OpCall,
    Pattern,
    Through,
    any_,
    capture_names,
    computed,
    const,
    field,
    op,
    optional,
    scalar,
    through,
)

__all__ = [
    "Any",
    "Const",
    "Either",
    "Field",
    "Graph",
    "Match",
    "MatchTest",
    "OpCall",
    "Pattern",
    "Through",
    "any_",
    "capture_names",
    "computed",
    "const",
    "field",
    "find",
    "match_at",
    "op",
    "optional",
    "scalar",
    "through",
]
