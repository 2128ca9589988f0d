"""Walking and rewriting: one file for each kind of node; `unity.ir.visit` has them all."""
