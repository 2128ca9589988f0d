"""Attention: two contractions with row stages between them, by blocks of rows and on matrix tiles."""
