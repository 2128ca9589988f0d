"""Values that are no tensors: sequences of tensors and optional values."""
