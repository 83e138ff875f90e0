"""An interactive page: nothing that is handed in gets out of its place, or in anywhere else."""

import base64
import hashlib
import json
import re
import subprocess
import zlib

import pytest
from tests.scripts import find_node
from tests.unit.reports.reading import Reader

from bertkit.reports.interactive import InteractivePage, join_modules, write_page

SHARED = """
let count = 0;
/** export nothing here: this is a comment. */
export function next() {
  count += 1;
  return count;
}

export const STEP = 10, unseen = 3;
export class Pair {
  constructor(first, second) {
    Object.assign(this, { first, second });
  }
}
"""
USER = """import { next as step, STEP } from "./shared.js";
import {
  Pair,
} from "./shared.js";

const count = "my own";
export async function sum() {
  return new Pair(count, step() + step() + STEP);
}
"""
START = """import { sum } from "./user.js";
import { next } from "./shared.js";

sum().then((pair) => console.log(JSON.stringify(pair), next()));
"""


def run(script):
    node = find_node()
    if node is None:
        pytest.skip("needs Node: install Playwright, which brings one, or the package nodejs")
    done = subprocess.run([node, "-e", script], capture_output=True, text=True, check=True)
    return done.stdout


def test_modules_share_what_they_export_and_nothing_else():
    script = join_modules({"start.js": START, "user.js": USER, "shared.js": SHARED})
    assert run(script) == '{"first":"my own","second":13} 3\n'


def test_a_module_is_strict_and_runs_once_after_those_that_it_imports():
    log = 'export const here = console.log("{0}");'
    script = join_modules(
        {
            "start.js": 'import { here as b } from "./b.js";\nimport { here } from "./a.js";',
            "a.js": log.format("a"),
            "b.js": 'import { here as a } from "./a.js";\n' + log.format("b"),
            "unused.js": log.format("unused"),
        }
    )
    assert run(script) == "a\nb\n"
    script = join_modules({"start.js": "try { loose = 1; } catch (error) { console.log('no'); }"})
    assert run(script) == "no\n"


@pytest.mark.parametrize(
    "source",
    [
        "export default 3;",
        "export let count = 3;",
        "export { count };",
        'export * from "./shared.js";',
        'import shared from "./shared.js";',
        'import * as shared from "./shared.js";',
        'import "./shared.js";',
        "import { next } from './shared.js';",
        'import { next } from "https://example.org/next.js";',
        'import { next } from "./shared.js"',
    ],
)
def test_other_forms_are_refused(source):
    with pytest.raises(ValueError, match=r"start.js holds ['\"](import|export)"):
        join_modules({"start.js": source, "shared.js": SHARED})


@pytest.mark.parametrize("text", ["</script>", "</SCRIPT ", "<!--"])
def test_what_would_end_the_script_is_refused(text):
    with pytest.raises(ValueError, match="neither </script nor <!--"):
        join_modules({"start.js": f'const text = "{text}";'})


def test_what_is_not_there_or_not_exported_is_told():
    with pytest.raises(ValueError, match=r"start.js needs the module gone.js"):
        join_modules({"start.js": 'import { a } from "./gone.js";'})
    with pytest.raises(ValueError, match=r"a page needs the module start.js"):
        join_modules({"shared.js": SHARED})
    with pytest.raises(ValueError, match=r"start.js imports unseen, and shared.js doesn't export"):
        join_modules({"start.js": 'import { unseen } from "./shared.js";', "shared.js": SHARED})
    sources = {
        "start.js": 'import { a } from "./a.js";',
        "a.js": 'import { b } from "./b.js";',
        "b.js": 'import { a } from "./a.js";',
    }
    with pytest.raises(ValueError, match=r"start.js → a.js → b.js → a.js"):
        join_modules(sources)


def test_line_ends_are_those_that_the_browser_hashes():
    script = join_modules({"start.js": "const a = 1;\r\nconst b = 2;\r"})
    assert "\r" not in script
    sources = {"start.js": START, "user.js": USER, "shared.js": SHARED}
    other = {name: source.replace("\n", "\r\n") for name, source in sources.items()}
    assert join_modules(other) == join_modules(sources)
    assert "const a = 1;\nconst b = 2;" in script
    assert build(styles=["a {\r\n}\r"]).render() == build(styles=["a {\n}\n"]).render()


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


def hash_of(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_names_the_hashes_of_the_script_and_the_style_and_forbids_the_rest():
    page = Reader(build().render())
    assert [element["tag"] for element in page.elements][:4] == ["html", "head", "meta", "meta"]
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


def test_numbers_that_are_none_and_ends_of_styles_are_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        build(data={"loss": float("nan")}).render()
    with pytest.raises(ValueError, match="</style"):
        build(styles=["a { } </STYLE><script>"]).render()


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


def test_the_page_is_written_whole_or_not_at_all(tmp_path):
    record = write_page(tmp_path / "page.html", build(title=HOSTILE))
    content = (tmp_path / "page.html").read_bytes()
    assert record.sha256 == hashlib.sha256(content).hexdigest()
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_page(tmp_path / "other.html", build(data=float("inf")))
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
