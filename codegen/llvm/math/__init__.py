"""Our own elementary functions: vectorized, without a C library, each with a documented error bound."""
