"""Modules become one script that runs them in order, each in a scope of its own."""

import subprocess

import pytest
from tests.scripts import find_node

from bertkit.reports.modules import join_modules

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


def test_a_module_runs_once_and_after_those_that_it_imports():
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


def test_modules_are_strict():
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


def test_a_module_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"start.js needs the module gone.js"):
        join_modules({"start.js": 'import { a } from "./gone.js";'})
    with pytest.raises(ValueError, match=r"a page needs the module start.js"):
        join_modules({"shared.js": SHARED})


def test_a_name_that_a_module_does_not_export_is_told():
    with pytest.raises(ValueError, match=r"start.js imports unseen, and shared.js doesn't export"):
        join_modules({"start.js": 'import { unseen } from "./shared.js";', "shared.js": SHARED})


def test_modules_that_import_each_other_are_refused():
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
    assert "const a = 1;\nconst b = 2;" in script


def test_imports_are_found_whatever_ends_their_lines():
    sources = {"start.js": START, "user.js": USER, "shared.js": SHARED}
    other = {name: source.replace("\n", "\r\n") for name, source in sources.items()}
    assert join_modules(other) == join_modules(sources)
