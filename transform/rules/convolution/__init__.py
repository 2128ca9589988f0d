"""Convolution and pooling over blocks of channels, in registers and on matrix tiles."""
