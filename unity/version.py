"""Unity's version, also written into the artifacts that it makes."""

VERSION = "0.1.0"
