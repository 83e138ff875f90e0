"""Views of what a BERT does: each collects numbers and has a script that draws them.

A view is `<name>.py` with a `View`, `<name>.js` that exports `view`, and a line in `VIEWS`. What the
script gets is told in `reports/page/page.js` (the page's data and what is chosen on it) and
`frame.js` (its tab and controls); `dom.js`, `colour.js`, `chips.js`, `keys.js` and `numbers.js` are
what views share. All scripts of a page are one name space of files: parts of a view have names of
their own.
"""
