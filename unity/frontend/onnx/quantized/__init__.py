"""Nodes of quantized models: tensors made integers and back, products and convolutions of them."""
