"""The bundle of the page's modules: what each sees of the others, and which mistakes it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kcluster.runs.page.bundle import BundleError, bundle
from kcluster.runs.page.document import FOLDER


def made(folder: Path, **modules: str) -> str:
    """The bundle of these modules; `in_x` is x.js in the folder `in`."""
    for name, text in modules.items():
        path = folder / f"{name.replace('_', '/')}.js"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    return bundle(folder, "main.js")


def test_bundle__a_module_follows_what_it_imports_and_sees_only_that(tmp_path: Path) -> None:
    text = made(
        tmp_path,
        a='import {\n  one,\n  two,\n} from "./views/z.js";\n\nconst own = one + two();\n',
        views_z="// Gone.\n\nconst own = 1;\nexport const one = own;\nexport function two() {}\n",
        main='import "./a.js";\n',
    )
    assert text == (
        '"use strict";\n'
        "const $views_z = (() => {\n\nconst own = 1;\nconst one = own;\nfunction two() {}\n"
        "return {one, two};\n})();\n"
        "const $a = (() => {\nconst {one, two} = $views_z;\n\nconst own = one + two();\n"
        "return {};\n})();\n"
        "const $main = (() => {\nreturn {};\n})();\n"
    )


def test_bundle__a_later_script_leaves_out_what_has_run(tmp_path: Path) -> None:
    made(tmp_path, main='import "./a.js";\n', a="export const one = 1;\n")
    made(tmp_path, late='import { one } from "./a.js";\nf(one);\n')
    assert bundle(tmp_path, "late.js", after=["main.js"]) == (
        '"use strict";\nconst $late = (() => {\nconst {one} = $a;\nf(one);\nreturn {};\n})();\n'
    )


def test_page__each_module_is_in_a_script_and_a_run_has_none_that_asks_a_cluster() -> None:
    entries = ["open.js", "recorded.js", "moments.js"]
    ran = "".join(bundle(FOLDER, entry, after=entries[:at]) for at, entry in enumerate(entries))
    scripts = (bundle(FOLDER, "main.js"), ran)
    for path in FOLDER.rglob("*.js"):
        name = f"const ${'_'.join(path.relative_to(FOLDER).with_suffix('').parts)} ="
        assert any(name in script for script in scripts), path
        assert ran.count(name) <= 1, path
    for name in ("actions", "connection", "controls", "dialogs", "first", "sound"):
        assert f"const ${name} =" not in ran


def test_bundle__comments_go_and_text_that_looks_like_one_stays(tmp_path: Path) -> None:
    text = made(tmp_path, main='/** Types. */\n/**\n * @param {*} x\n */\nf("// no /** no");\n')
    assert 'f("// no /** no");' in text
    assert "@param" not in text


@pytest.mark.parametrize(
    ("modules", "reason"),
    [
        ({"main": 'import { x } from "./gone.js";\n'}, "main.js imports ./gone.js, which is not"),
        ({"main": 'import { x } from "./a.js";\n', "a": "const x = 1;\n"}, "main.js imports x"),
        (
            {
                "main": 'import { x } from "./a.js";\n',
                "a": 'import { y } from "./b.js";\nexport const x = 1;\n',
                "b": 'import { x } from "./a.js";\nexport const y = 1;\n',
            },
            "a.js imports b.js imports a.js",
        ),
    ],
)
def test_bundle__modules_that_do_not_fit_are_refused(
    tmp_path: Path, modules: dict[str, str], reason: str
) -> None:
    with pytest.raises(BundleError, match=re.escape(reason)):
        made(tmp_path, **modules)


def test_page__its_modules_take_no_text_for_html_and_decide_by_no_words() -> None:
    for path in FOLDER.rglob("*.js"):
        text = path.read_text("utf-8")
        assert text.startswith("// @ts-check\n"), path
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
        assert not re.search(r"note\.text\s*(===|!==|\.(includes|startsWith|endsWith|match))", text)
