"""How elements are put in order, and the first of them found: what sorting and searching share."""
