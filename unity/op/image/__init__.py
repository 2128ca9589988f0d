"""Operators on images: resizing, and sampling at the points of a grid."""
