"""What schedule rules are made of: register tiles, packing, dot products, shared work.

A file here is a small composition of steps that several rules take, or the numbers that it takes
them with (`tiling`, `tile_sizes`, `row_blocks`). What one rule alone needs stays with the rule.
"""
