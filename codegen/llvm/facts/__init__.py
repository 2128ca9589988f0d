"""What is known of a kernel before it is emitted: signs, lanes, places, work."""
