"""Operators alone, at shapes that nobody tuned for."""
