"""How the documentation is built."""

import bertkit
from bertkit import __version__

# Loaded first: autodoc imports as a type checker would, and pydantic can't build every model then.
for name in bertkit.__all__:
    getattr(bertkit, name)

project = "bertkit"
author = "the bertkit contributors"
copyright = "the bertkit contributors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
smartquotes = False  # would turn --flags into dashes

autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_custom_sections = [("Source", "params_style")]
copybutton_prompt_text = "$ "

html_theme = "furo"
html_title = f"bertkit {version}"
html_show_sourcelink = False
