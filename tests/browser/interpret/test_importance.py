"""The importance view in a real browser: a map to be read and clicked, and what the model says."""

import re

import pytest
from tests.unit.inference.small import save_kind
from tests.unit.inference.small_task import save_classifier, save_model, save_tagger

from bertkit.interpret.ablation import HeadName
from bertkit.interpret.build import build_page
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.views.view import ViewInputs
from bertkit.models.bert.encoder import BertModel
from bertkit.reports.interactive import write_page
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.regress.task import Regress

TEXT = "the cat saw a hat ."
HOSTILE = "</script><img src=x onerror=alert(1)>"
OFF = (HeadName(1, 2), HeadName(2, 1))


@pytest.fixture
def write(tmp_path):
    def write_folder(folder, *heads):
        inspected = InspectedModel.load(folder)
        observation = inspected.observe(inspected.read(TEXT), heads)
        inputs = ViewInputs(inspected, observation)
        write_page(tmp_path / "page.html", build_page(inputs, ["importance", "heads"]))
        return tmp_path / "page.html"

    return write_folder


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    return save_classifier(tmp_path_factory.mktemp("importance") / "labels")


def cells(page):
    return page.locator(".importance-cell")


def details(page):
    return page.locator(".importance-details").inner_text()


def test_a_cell_is_read_by_pointing_and_by_keys_and_leads_to_the_head(open_page, write, labels):
    page = open_page(write(labels))
    assert cells(page).count() == 4
    cells(page).nth(2).hover()
    assert re.match(r"Head 2\.1: without it the probability goes from .* to .* %", details(page))
    cells(page).nth(2).click()
    assert page.get_by_role("tab", name="Heads").get_attribute("aria-selected") == "true"
    page.get_by_role("tab", name="Importance").click()
    assert "is-chosen" in cells(page).nth(2).get_attribute("class")
    cells(page).first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert details(page).startswith("Head 2.2:")
    page.keyboard.press("Enter")
    assert page.get_by_role("tab", name="Heads").get_attribute("aria-selected") == "true"


def test_the_strongest_heads_come_first_and_the_gradient_is_another_map(open_page, write, labels):
    page = open_page(write(labels))
    texts = page.locator(".importance-ranking li").all_inner_texts()
    changes = [float(re.search(r"\(([−+])([\d.e-]+)\)", text)[2]) for text in texts]
    assert changes == sorted(changes, reverse=True)
    names = "els => els.map(e => e.getAttribute('aria-label'))"
    before = cells(page).evaluate_all(names)
    shade = "e => getComputedStyle(e).backgroundColor"
    light = cells(page).first.evaluate(shade)
    page.get_by_role("button", name="light / dark").click()
    assert cells(page).first.evaluate(shade) != light
    page.get_by_role("button", name="gradient").click()
    after = cells(page).evaluate_all(names)
    assert all("without it" in name for name in before)
    assert all("the loss reacts by" in name for name in after)
    assert page.locator(".importance-ranking li").count() == 4


def test_with_heads_off_both_outcomes_stand_side_by_side(open_page, write, labels):
    page = open_page(write(labels, *OFF))
    assert page.get_by_role("heading", name="Changes without 1.2, 2.1").is_visible()
    cell_texts = page.locator(".said td").all_inner_texts()
    assert len(cell_texts) == 4
    assert "→" in cell_texts[3]
    assert cells(page).all_inner_texts() == ["", "off", "off", ""]
    assert "switched off already" in cells(page).nth(1).get_attribute("aria-label")


def test_words_can_be_chosen_where_each_is_tagged(open_page, write, tmp_path):
    page = open_page(write(save_tagger(tmp_path / "tags"), *OFF))
    assert page.locator(".said tbody tr").count() == 6
    page.get_by_role("button", name="saw").click()
    assert "mean probability" in cells(page).first.get_attribute("aria-label")


def test_a_plain_encoder_has_a_map_of_turns_alone(open_page, write, tmp_path):
    save_kind(tmp_path / "plain", BertModel)
    page = open_page(write(tmp_path / "plain", *OFF))
    assert page.get_by_role("button", name="gradient").count() == 0
    assert page.get_by_text("no prediction for the text").is_visible()
    assert page.get_by_text("each token's vector moves by").is_visible()


def test_a_number_is_told(open_page, write, tmp_path):
    folder = save_model(tmp_path / "numbers", Regress(RegressSettings(max_length=16)))
    page = open_page(write(folder, *OFF))
    assert page.get_by_text(
        re.compile("The model predicts the number .*; with all heads")
    ).is_visible()


def test_hostile_labels_stay_text(open_page, write, tmp_path):
    task = Classify(ClassifySettings(max_length=16), (HOSTILE, f"{HOSTILE}2"))
    page = open_page(write(save_model(tmp_path / "labels", task), *OFF))
    assert page.locator("img").count() == 0
    assert page.get_by_text(HOSTILE).first.is_visible()
