"""Users' rewrite rules."""
