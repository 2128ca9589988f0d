"""The `unity` command: each sub-command is a file, imported when it is called."""
