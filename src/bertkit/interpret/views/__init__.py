"""Views of a model's internals: each collects numbers and has a script that draws them.

A view is `<name>.py` with a `View`, `<name>.js` that exports `view`, and a line in `VIEWS`. The
script's inputs are described in `reports/page/page.js` (the page's data and selection) and
`frame.js` (its tab and controls); views share `dom.js`, `color.js`, `chips.js`, `keys.js` and
`numbers.js`. All scripts of a page, even in different views, need different names.
"""
