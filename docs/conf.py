"""Sphinx's settings for the site that `make docs` builds; docs/decisions/010 has the reasons."""

project = "kcluster"
extensions = ["myst_parser"]
exclude_patterns = ["schema"]  # JSON Schemas: pages link to them
myst_heading_anchors = 4  # anchors as on GitHub, so that a link works in both places
nitpicky = True
smartquotes = False  # `--option` stays as it is

html_theme = "furo"  # fetches nothing from other servers: the site can be read offline
html_title = "kcluster"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["site.css"]
