"""Our own elementary functions: vectors, no C library, a documented error bound each."""
