"""Views and files agree."""

from importlib import resources

from bertkit.interpret.views.table import VIEWS
from bertkit.reports.interactive import page_modules, read_files

FOLDER = resources.files("bertkit.interpret").joinpath("views")
LONGEST_PARAGRAPH = 700  # characters; people read legends beside what they explain


def test_each_view_has_a_script_of_its_name():
    for name, view in VIEWS.items():
        assert view.name == name
        assert f'name: "{name}"' in FOLDER.joinpath(f"{name}.js").read_text()


def test_legends_are_short_paragraphs():
    for view in VIEWS.values():
        assert view.legend
        assert all(0 < len(part) <= LONGEST_PARAGRAPH for part in view.legend), view.name


def test_no_script_of_a_view_replaces_one_of_the_page():
    assert not page_modules().keys() & read_files(FOLDER, ".js").keys()
