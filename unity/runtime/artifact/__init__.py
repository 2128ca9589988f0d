"""Executables as files: `Executable.save` writes one, `load` makes it callable again.

An artifact is one file in the layout of safetensors, so that its constants can be read by any tool
that knows that. `container` is the file, `manifest` what it says of itself, `match` whether that
fits this machine, `write` and `read` the way there and back.
"""
