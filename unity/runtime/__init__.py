"""Running a program: bytecode, interpreter, native code, executables. Imports no compiler code."""
