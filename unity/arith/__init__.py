"""Integer index arithmetic: canonical form, interval bounds and proofs.

Comes in: int64 prim expressions over loop variables and sizes. Comes out: simpler ones with the
same value wherever every variable lies in its range. Float arithmetic is left as it is.

>>> from unity.ir.prim_expr import PrimVar
>>> i, j = PrimVar("i"), PrimVar("j")
>>> index = simplify((i * 8 + j) // 8, {j: (0, 7)})
>>> index is i
True
"""

from .analyzer import Analyzer, bounds, prove, simplify
from .interval import Interval

__all__ = ["Analyzer", "Interval", "bounds", "prove", "simplify"]
