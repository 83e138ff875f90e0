"""What models write is shown on the page, also word by word."""

import json

import pytest
from playwright.sync_api import expect
from tests.browser.serving.asking import address, ask, asked, choose


@pytest.mark.parametrize(("model", "task"), [("translator", "Translate")])
def test_what_is_written_is_shown(page, client, model, task):
    choose(page, model, task)
    result = ask(page, text="the cat saw a hat . a dog lost")
    path, body = asked(result)
    text = client.post(f"/{path}", body).json["results"]["text"]
    assert text
    expect(result.locator(".written")).to_have_text(text)


def test_a_text_is_continued(page, client):
    choose(page, "writer", "Continue")
    result = ask(page, text="the dog saw a hat .")
    path, body = asked(result)
    assert body == {"inputs": "the dog saw a hat .", "stream": True}
    events = client.post(f"/{path}", body).content.decode().split("\n\n")
    written = "".join(json.loads(one.removeprefix("data: "))["text"] for one in events[:-2])
    assert written == " dog"
    expect(result.locator(".written")).to_have_text("the dog saw a hat . dog")


# a script: /generate answers with events byte by byte, the last ones when the page says so
SLOW = """
const ask = fetch;
const failure = '{"error":{"message":"it failed"}}';
const events = ['{"text":" früh"}', '{"text":" dog"}', "[DONE]", failure];
const send = (sent, controller) => new TextEncoder()
  .encode(sent.map((event) => `data: ${event}\\n\\n`).join(""))
  .forEach((byte) => controller.enqueue(Uint8Array.of(byte)));
window.fetch = async (path, options) => (path.endsWith("/generate")
  ? new Response(new ReadableStream({ start(controller) {
    send(events.slice(0, 2), controller);
    window.end = (index) => { send([events[index]], controller); controller.close(); };
  } }))
  : ask(path, options));
"""


def test_what_is_written_is_shown_as_it_comes(open_page, client):
    page = open_page(address(client), SLOW)
    choose(page, "writer", "Continue")
    for _ in range(2):
        page.get_by_label("Text").fill("the")
        page.keyboard.press("Enter")
        expect(page.locator(".written")).to_have_text("the früh dog")
        assert page.locator(".command").count() == 0
        page.evaluate("end(2)")
        page.locator(".command").wait_for()
        expect(page.locator(".written")).to_have_text("the früh dog")
    page.get_by_label("Text").fill("a")
    page.keyboard.press("Enter")
    expect(page.locator(".written")).to_have_text("a früh dog")
    page.evaluate("end(3)")
    expect(page.get_by_role("alert")).to_have_text("it failed")
