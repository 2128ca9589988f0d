"""Sphinx's settings; the pages under ``generated/`` are made of the code first."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent  # tests hold the catalogue of mistakes, which a page is made of
sys.path.insert(0, str(HERE.parent))

from docs import generate  # noqa: E402
from unity.version import VERSION  # noqa: E402

generate.write_pages(HERE / "generated")

project = "Unity"
author = "The authors of Unity"
version = release = VERSION
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
html_theme = "furo"
html_title = f"Unity {VERSION}"
exclude_patterns = ["_build"]
autodoc_typehints = "none"  # signatures are long enough; types stand in what `help` prints
autodoc_member_order = "bysource"
napoleon_use_ivar = True
myst_heading_anchors = 3
