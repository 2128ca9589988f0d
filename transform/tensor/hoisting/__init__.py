"""What loops leave alone, done once before them: divisions, functions, places that are loaded."""
