"""``com.microsoft``: operators of onnxruntime that exported and optimized models carry.

Their semantics are those of onnxruntime's documentation of them and of what it computes.
"""
