"""What is left of loops that tiles do not divide, and where borders cut them."""
