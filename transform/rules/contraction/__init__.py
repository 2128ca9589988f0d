"""Contractions and other reductions: matrix products of any layout, sums of rows and columns."""
