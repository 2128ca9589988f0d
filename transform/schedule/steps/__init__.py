"""The steps of `Schedule`, grouped as `primitives` are: each records what a primitive did."""
