"""What schedule rules are made of: register tiles, packing, panels, work shared among threads."""
