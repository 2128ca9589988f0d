"""The example that ships: a CNN for handwritten digits, made by ``tutorials/train_digits.py``."""
