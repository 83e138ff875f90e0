"""The page of a server in a real browser: what it shows is what the routes answer."""

import json
import math
import shutil
import subprocess
from operator import mul

import pytest
from playwright.sync_api import expect
from tests.browser.serving.asking import address, ask, asked, choose, percent, rows
from tests.closeness import close
from tests.unit.serving.running import running
from tests.unit.serving.small_models import HAS_DECODERS
from tests.waiting import TIMEOUT_SECONDS

KEY = "a-key-of-this-server"
HOSTILE = "the </script><img src=x onerror=alert(1)>"
TASKS = [
    ("words", "Fill in"),
    ("words", "Score"),
    ("sentiment", "Classify"),
    ("entities", "Find entities"),
    ("reader", "Answer"),
    ("chooser", "Choose"),
    ("reranker", "Predict a number"),
    ("reranker", "Order by a query"),
    ("encoder", "Find neighbors"),
    ("notes", "Search"),
]
if HAS_DECODERS:
    TASKS += [("writer", "Continue"), ("translator", "Translate")]


def test_blanks_have_bars(page, client):
    choose(page, "words", "Fill in")
    result = ask(page, text="the [MASK] saw a [MASK] .")
    path, body = asked(result)
    assert (path, body) == ("v1/models/words/fill-mask", {"inputs": "the [MASK] saw a [MASK] ."})
    expected = client.post(f"/{path}", body).json["results"]
    assert rows(result) == [
        [one["token"], percent(one["probability"])] for one in expected["blanks"][0]
    ]
    assert result.locator(".bars").count() == 2
    assert expected["filled"] in result.inner_text()
    widths = result.locator(".bar").evaluate_all("bars => bars.map((bar) => bar.style.width)")
    shares = [one["probability"] for blank in expected["blanks"] for one in blank]
    assert [float(one.strip("%")) for one in widths] == close(
        [100 * share for share in shares], within=1e-3
    )


def test_a_word_is_hidden_by_a_click_and_comes_back(page):
    choose(page, "words", "Fill in")
    box = page.get_by_label("Text")
    box.fill("the cat saw")
    words = page.get_by_role("group", name="Words to hide")
    words.get_by_role("button", name="cat").click()
    expect(box).to_have_value("the [MASK] saw")
    page.locator(".result .bars").wait_for()
    hidden = words.get_by_role("button", name="[MASK]")
    expect(hidden).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(box).to_have_value("the [MASK] [MASK]")
    hidden.first.click()
    expect(box).to_have_value("the cat [MASK]")
    choose(page, "words", "Score")
    choose(page, "words", "Fill in")
    expect(box).to_have_value("the cat [MASK]")
    box.fill("a [MASK] lost")  # what was hidden before is forgotten
    expect(words.get_by_role("button")).to_have_text(["a", "lost"])


def test_labels_have_bars_of_a_text_and_of_a_pair(page, client):
    choose(page, "sentiment", "Classify")
    found = {}
    for second in ("", "a dog"):
        result = ask(page, text="the cat saw", second=second)
        path, body = asked(result)
        assert body["inputs"] == ([["the cat saw", second]] if second else "the cat saw")
        results = client.post(f"/{path}", body).json["results"]
        shares = (results[0] if second else results)["probabilities"]
        ranked = sorted(shares.items(), key=lambda one: -one[1])
        expect(result.locator(".bars tr th")).to_have_text([label for label, _ in ranked])
        assert rows(result) == [[label, percent(share)] for label, share in ranked]
        found[second] = rows(result)
    assert found[""] != found["a dog"]


def test_entities_are_marked_with_their_type(page, client):
    choose(page, "entities", "Find entities")
    text = "😀 the cat saw a dog"  # one character, two units of a string in JavaScript
    result = ask(page, text=text)
    path, body = asked(result)
    entities = client.post(f"/{path}", body).json["results"]["entities"]
    assert entities
    marks = result.locator("mark")
    assert marks.all_inner_texts() == [f"{one['text']}{one['type']}" for one in entities]
    assert result.locator(".kinds").inner_text() == f"ANIMAL {len(entities)}"
    marks.locator("small").evaluate_all("all => all.forEach((one) => one.remove())")
    assert result.locator(".marked").inner_text() == text


def test_the_answer_is_marked_in_its_passage(page, client):
    choose(page, "reader", "Answer")
    result = ask(page, question="a dog", passage="the cat saw a hat . a dog lost the hat")
    path, body = asked(result)
    found = client.post(f"/{path}", body).json["results"]
    mark = result.locator("mark")
    assert mark.inner_text() == f"{found['text']}{percent(found['probability'])}"
    assert rows(result) == [
        [one["text"], percent(one["probability"])] for one in found["n_best"][:5]
    ]


def list_follows(body, answer):
    share = answer["results"][0]
    return [["follows", percent(share)], ["doesn't follow", percent(1 - share)]]


def list_endings(body, answer):
    shares = answer["results"]["probabilities"]
    return [[ending, percent(share)] for ending, share in zip(ENDINGS, shares, strict=True)]


def list_ordered(body, answer):
    assert body["documents"] == ["a dog", "the cat saw a hat", "lost"]
    found = answer["results"]
    return [[body["documents"][one["index"]], percent(one["relevance_score"])] for one in found]


def list_neighbors(body, answer):
    first, *others = [one["embedding"] for one in answer["data"]]
    cosines = [f"{sum(map(mul, first, other)):.3f}" for other in others]
    return [["The cat was sitting.", cosines[1]], ["It rains.", cosines[0]]]


def list_scores(body, answer):
    means = [math.exp(one["log_probability"] / one["num_tokens"]) for one in answer["results"]]
    return [["the cat", percent(means[0])], ["a dog saw", percent(means[1])]]


def list_hits(body, answer):
    assert answer["results"][0]["text"] == "It rains."
    return shown(answer)


def list_filtered(body, answer):
    assert body["where"] == "length > 9"
    assert len(answer["results"]) == 2
    return shown(answer)


def shown(answer):
    return [
        [f"{hit['text']}\n{hit['id']}, length: {len(hit['text'])}", f"{hit['score']:.3f}"]
        for hit in answer["results"]
    ]


ENDINGS, DOCUMENTS = ["saw a dog", "lost the hat"], "a dog\n\nthe cat saw a hat\nlost"
NEIGHBORS = "A cat sat.\nIt rains.\nThe cat was sitting."


@pytest.mark.parametrize(
    ("model", "task", "texts", "list_expected"),
    [
        ("words", "Does it follow?", {"text": "the cat saw", "second": "a dog"}, list_follows),
        ("chooser", "Choose", {"beginning": "cat", "endings": "\n".join(ENDINGS)}, list_endings),
        ("reranker", "Order by a query", {"query": "cat", "texts": DOCUMENTS}, list_ordered),
        ("encoder", "Find neighbors", {"texts": NEIGHBORS}, list_neighbors),
        ("notes", "Search", {"query": "weather"}, list_hits),
        ("notes", "Search", {"query": "an animal", "filter": "length > 9"}, list_filtered),
        ("words", "Score", {"texts": "the cat\na dog saw"}, list_scores),
    ],
)
def test_bars_are_those_of_the_answer(page, client, model, task, texts, list_expected):
    choose(page, model, task)
    result = ask(page, **texts)
    path, body = asked(result)
    assert rows(result) == list_expected(body, client.post(f"/{path}", body).json)


def test_a_number_is_shown(page, client):
    choose(page, "reranker", "Predict a number")
    result = ask(page, text="the cat")
    path, body = asked(result)
    value = client.post(f"/{path}", body).json["results"]["value"]
    assert float(result.locator(".written").inner_text()) == close(value, within=1e-3 * abs(value))


def test_the_words_of_the_server_are_shown_where_it_refuses(page, open_page):
    choose(page, "words", "Fill in")
    page.get_by_label("Text").first.fill("the " * 600 + "[MASK]")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("has 603 tokens")
    assert page.locator(".command").count() == 0
    assert "400" in open_page.complaints.pop()
    choose(page, "encoder", "Find neighbors")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_everything_by_keyboard(page):
    page.get_by_role("button", name="light / dark").focus()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="encoder")).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="words")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Text")).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("a [MASK] saw")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("the hat")
    page.keyboard.press("Enter")
    page.locator(".command").wait_for()
    assert asked(page.locator(".result"))[1] == {"inputs": "a [MASK] saw\nthe hat"}
    assert page.get_by_role("status").inner_text() == "The answer is below."


def test_what_was_typed_stays_for_other_models_and_its_markup_is_text(page):
    choose(page, "sentiment", "Classify")
    page.get_by_label("Text").first.fill(HOSTILE)
    choose(page, "entities", "Find entities")
    result = ask(page)
    expect(page.get_by_label("Text")).to_have_value(HOSTILE)
    result.locator("small").evaluate_all("all => all.forEach((one) => one.remove())")
    assert result.locator(".marked").inner_text() == HOSTILE
    assert page.locator("img").count() == 0


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_line_for_a_shell_asks_the_same(page):
    choose(page, "sentiment", "Classify")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    result = ask(page, text='it\'s "the" cat $HOME `ls` \\ saw')
    shown = rows(result)
    page.get_by_role("button", name="Copy").click()
    line = page.evaluate("navigator.clipboard.readText()")
    assert line == result.locator(".command code").inner_text()
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, check=True, timeout=TIMEOUT_SECONDS, text=True
    )
    shares = json.loads(done.stdout)["results"]["probabilities"]
    ranked = sorted(shares.items(), key=lambda one: -one[1])
    assert shown == [[label, percent(share)] for label, share in ranked]


def test_a_key_is_asked_for_and_stays_in_memory(open_page, models, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text(KEY)
    with running({"words": models["words"]}, key_file=keys) as client:
        page = open_page(address(client))
        field = page.get_by_label("Key of the server")
        expect(field).to_be_focused()
        assert page.get_by_role("group", name="Model").count() == 0
        page.keyboard.type("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("wants one of its keys")
        field.fill(KEY)
        page.keyboard.press("Enter")
        page.get_by_role("button", name="words").wait_for()
        expect(field).to_be_hidden()
        line = ask(page, text="the [MASK] saw").locator(".command code").inner_text()
        assert KEY not in line
        assert '-H "Authorization: Bearer $KEY"' in line
        assert page.evaluate("localStorage.length + sessionStorage.length") == 0
        assert page.context.cookies() == []
        refused = [text for text in open_page.complaints if "401" in text]
        assert len(refused) == 2
        open_page.complaints[:] = [text for text in open_page.complaints if text not in refused]


def test_models_are_listed_once_they_are_loaded(browser, client):
    page = browser.new_page()
    refusal = {"error": {"message": "words is being loaded; try again"}}
    refused = {"status": 503, "headers": {"Retry-After": "1"}, "json": refusal}
    page.route("**/v1/models", lambda route: route.fulfill(**refused), times=1)
    page.goto(address(client))
    expect(page.get_by_role("alert")).to_have_text("words is being loaded; try again. Wait 1 s.")
    page.get_by_role("button", name="words").wait_for()
    expect(page.get_by_role("alert")).to_have_count(0)
    page.close()


def test_a_slow_answer_is_given_up_for_a_later_one(page):
    choose(page, "sentiment", "Classify")
    held = []
    page.route("**/classify", lambda route: held.append(route) if not held else route.continue_())
    page.get_by_label("Text").first.fill("the cat")
    page.keyboard.press("Enter")
    expect(page.locator(".result")).to_have_attribute("aria-busy", "true")
    result = ask(page, text="a dog saw")
    assert asked(result)[1] == {"inputs": "a dog saw"}
    assert result.get_attribute("aria-busy") is None
    page.unroute_all()


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.exhaustive), "dark"])
def test_each_task_fits_a_narrow_window(open_page, client, scheme):
    size = {"width": 390, "height": 800}
    page = open_page(address(client), viewport=size, color_scheme=scheme)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 28)"}[scheme]
    for model, task in TASKS:
        choose(page, model, task)
        ask(page)
        expect(page.get_by_role("alert")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, task
