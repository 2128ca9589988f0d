"""Convolution and pooling over blocks of channels."""
