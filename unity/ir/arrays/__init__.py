"""Arrays of constants: those that lie in a file, and where they begin in memory."""
