"""What Relay's operators become: a file for each family of converters; `table` lists them all."""
