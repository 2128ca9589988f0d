"""Attention: two contractions with row stages between them."""
