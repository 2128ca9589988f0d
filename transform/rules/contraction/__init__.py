"""Contractions and other reductions."""
