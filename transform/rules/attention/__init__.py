"""Attention: two contractions with row stages between them, by rows and on matrix tiles."""
