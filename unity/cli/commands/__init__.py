"""The commands and their options, by what they are for; the work of each is done elsewhere."""
