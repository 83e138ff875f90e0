"""An interactive page: nothing that is handed in gets out of its place, or in anywhere else."""

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser

import pytest

from bertkit.base.errors import StorageError
from bertkit.reports.interactive import InteractivePage, page_modules, write_page

HOSTILE = "</script></style></title><img src=x onerror=alert(1)>\"'&amp;<!--\u2028\x00\ud800é"


def build(**changes):
    content = {
        "title": "A page",
        "modules": {"start.js": "const a = 1 < 2 && 3 > 2;"},
        "styles": [".own { color: red; }"],
        "data": {"words": ["a"]},
        "arrays": {"weights-1": bytes(range(256))},
    }
    return InteractivePage(**content | changes)


class Reader(HTMLParser):
    """What a browser finds: elements with their attributes, and the text in each."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.open = [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.elements.append({"tag": tag, "text": "", **dict(attributes)})
        if tag != "meta":
            self.open.append(self.elements[-1])

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        if self.open:
            self.open[-1]["text"] += data

    def find(self, tag, **attributes):
        return [
            element
            for element in self.elements
            if element["tag"] == tag
            and all(element.get(name) == value for name, value in attributes.items())
        ]


def hash_of(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_names_the_hashes_of_the_script_and_the_style_and_forbids_the_rest():
    page = Reader(build().render())
    (policy,) = [meta["content"] for meta in page.find("meta") if "http-equiv" in meta]
    (script,) = [element for element in page.find("script") if "type" not in element]
    (style,) = page.find("style")
    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src '{hash_of(script['text'])}'",
        f"style-src '{hash_of(style['text'])}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert "const a = 1 < 2 && 3 > 2;" in script["text"]
    assert ".own { color: red; }" in style["text"]


def test_a_style_has_the_line_ends_that_the_browser_hashes():
    assert build(styles=["a {\r\n}\r"]).render() == build(styles=["a {\n}\n"]).render()


def test_the_policy_stands_before_all_that_it_rules():
    tags = [element["tag"] for element in Reader(build().render()).elements]
    assert tags[:4] == ["html", "head", "meta", "meta"]
    assert tags.index("style") > 3


def test_hostile_text_stays_data():
    plain, hostile = (
        Reader(build(title=text, data={text: [text, {"deep": text}]}).render())
        for text in ("plain", HOSTILE)
    )
    shapes = [[sorted(element) for element in page.elements] for page in (plain, hostile)]
    assert shapes[0] == shapes[1]
    (data,) = hostile.find("script", id="data")
    shown = HOSTILE.replace("\u2028", "�").replace("\ud800", "�")
    assert json.loads(data["text"]) == {shown: [shown, {"deep": shown}]}
    assert not re.search("[<>&\u2028\x00]", data["text"])


def test_the_title_is_legible_text():
    page = Reader(build(title=HOSTILE).render())
    assert [page.find(tag)[0]["text"] for tag in ("title", "h1")] == [
        HOSTILE.replace("\x00", "␀").replace("\u2028", "�").replace("\ud800", "�")
    ] * 2


def test_numbers_that_are_none_are_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        build(data={"loss": float("nan")}).render()


def test_arrays_are_packed_and_found_by_name():
    page = Reader(build(arrays={"weights-1": bytes(range(256)), "none": b""}).render())
    for name, content in (("weights-1", bytes(range(256))), ("none", b"")):
        (array,) = page.find("script", id=f"array-{name}")
        assert array["type"] == "application/octet-stream"
        assert zlib.decompress(base64.b64decode(array["text"])) == content


@pytest.mark.parametrize("name", ["", "A", 'a"', "a b", "a>", "../a", "é", "a" * 65, "a\n"])
def test_a_name_of_an_array_that_could_be_markup_is_refused(name):
    with pytest.raises(ValueError, match="small letters, digits and -"):
        build(arrays={name: b""}).render()


def test_a_style_that_would_end_its_element_is_refused():
    with pytest.raises(ValueError, match="</style"):
        build(styles=["a { } </STYLE><script>"]).render()


def test_the_same_content_gives_the_same_bytes():
    assert build().render() == build().render()


def test_without_scripts_the_page_says_what_is_missing():
    page = Reader(build().render())
    assert page.find("noscript")
    assert "scripts" in page.find("p")[0]["text"]


def test_the_modules_of_the_page_are_in_the_package():
    assert {"dom.js", "frame.js", "state.js"} <= set(page_modules())


def test_the_page_is_written_whole_or_not_at_all(tmp_path):
    record = write_page(tmp_path / "page.html", build(title=HOSTILE))
    content = (tmp_path / "page.html").read_bytes()
    assert record.sha256 == hashlib.sha256(content).hexdigest()
    with pytest.raises(StorageError):
        write_page(tmp_path / "gone" / "page.html", build())
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_page(tmp_path / "other.html", build(data=float("inf")))
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
