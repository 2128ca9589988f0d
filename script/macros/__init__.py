"""Macros: pieces of programs with parameters, put in place where they are called."""
