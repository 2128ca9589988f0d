"""Unity's version, also written into the artifacts that it makes, and since when it is loaded."""

import time

VERSION = "0.1.0"
LOADED = time.time()
"""When this process loaded Unity: files that are written later are not what runs in it."""
