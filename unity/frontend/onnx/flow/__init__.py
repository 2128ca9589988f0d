"""Control flow: If, Loop and Scan, and the states that loops carry."""
