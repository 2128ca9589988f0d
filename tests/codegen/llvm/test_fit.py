"""The committed polynomials are those that the fit makes."""

from __future__ import annotations

import pytest

from unity.codegen.llvm.math import coefficients

from .fit import Fit, fits, polynomial


@pytest.mark.parametrize("fit", fits(), ids=lambda f: f"{f.name}-{f.bits}-{f.piece}")
def test_the_committed_polynomial_is_the_fitted_one(fit: Fit) -> None:
    committed: object = getattr(coefficients, fit.name)
    if isinstance(committed, dict):
        committed = committed[fit.bits]
    if fit.piece is not None:
        assert isinstance(committed, tuple)
        committed = committed[fit.piece]
    assert polynomial(fit) == committed
