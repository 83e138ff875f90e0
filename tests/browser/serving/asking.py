"""Choosing, typing and reading on the page of a server."""

import json


def address(client):
    return f"http://127.0.0.1:{client.server.port}/"


def choose(page, model, task):
    for group, name in (("Model", model), ("Task", task)):
        row = page.get_by_role("group", name=group, exact=True)
        row.get_by_role("button", name=name, exact=True).click()


def ask(page, **texts):
    """Type texts, ask by a key, and return the request's line and the part with the result."""
    for label, text in texts.items():
        page.get_by_label(label.capitalize()).first.fill(text)
    old = page.locator(".command code")  # of an earlier request
    old.evaluate_all("lines => lines.forEach((line) => line.remove())")
    page.locator("textarea").last.press("Control+Enter")
    page.locator(".command code").wait_for()
    return page.locator(".result")


def rows(result):
    """Names and numbers of the first bars."""
    return (
        result.locator(".bars")
        .first.locator("tr")
        .evaluate_all("rows => rows.map((row) => [row.cells[0].innerText, row.cells[1].innerText])")
    )


def percent(share):
    return f"{100 * share:.1f} %"


def asked(result):
    """What was sent, by the line for a shell: the path and the body."""
    line = result.locator(".command code").inner_text()
    path, _, body = line.partition(" -H 'Content-Type: application/json' -d ")
    return path.removeprefix("curl 'http://").partition("/")[2].strip("'"), json.loads(body[1:-1])
