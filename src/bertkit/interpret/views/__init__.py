"""Views of what a BERT does: each collects numbers and has a script that draws them.

A view is `<name>.py` with a `View`, `<name>.js` that exports `view`, and a line in `VIEWS`. What
the script gets is told in `reports/page/page.js` (the page's data and what is chosen on it) and
`frame.js` (its tab and controls); views share `dom.js`, `color.js`, `chips.js`, `keys.js` and
`numbers.js`. All scripts of a page have different names, also the parts of different views.
"""
