"""Where values lie when a program runs: what shares memory, and what is written in place."""
