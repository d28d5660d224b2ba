"""The interactive page: it is built from its parts, reacts in a browser, and its masks are those of Python."""

from __future__ import annotations

import inspect
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from docs.interactive import build, record
from tests.support.browser import chromium, open_on_phone
from tests.support.page_masks import ANSWER, BUILDERS, random_cases, random_values
from unified import masks
from unified.masks.tiles import visible_tiles

PAGE = Path(build.PAGE)


@pytest.fixture(scope="module")
def samples() -> dict[str, tuple[list[dict], list[dict]]]:
    return {kind: random_cases(np.random.default_rng(18), kind) for kind in [*BUILDERS, "pack", "matrix"]}


# ---------------------------------------------------------------------- engines


@pytest.fixture(scope="module")
def browser():
    """Chromium with the page open."""
    with chromium() as driver:
        driver.get(PAGE.as_uri())
        yield driver


def in_browser(driver, cases: list[dict]) -> list[dict]:
    return driver.execute_script(ANSWER + "return arguments[0].map(answer);", cases)


def in_node(cases: list, names: tuple[str, ...] = build.LOGIC, answer: str = ANSWER) -> list:
    logic = "\n".join(build.read(name) for name in names)
    program = f'"use strict";\n{logic}\n{answer}\nconsole.log(JSON.stringify({json.dumps(cases)}.map(answer)));'
    done = subprocess.run(["node", "-"], input=program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def require_equal(cases: list, expected: list, found: list) -> None:
    for case, right, said in zip(cases, expected, found, strict=True):
        assert said == right, case


@pytest.mark.parametrize("kind", [*BUILDERS, "pack", "matrix"])
def test_the_masks_of_the_page_are_those_of_python_in_a_browser(browser, samples, kind):
    cases, expected = samples[kind]
    require_equal(cases, expected, in_browser(browser, cases))


def test_the_masks_of_the_page_are_those_of_python_in_node(samples):
    if shutil.which("node") is None:
        pytest.skip("no node on the path: the page's code is compared with Python in a browser alone")
    cases = [case for own, _ in samples.values() for case in own]
    require_equal(cases, [one for _, own in samples.values() for one in own], in_node(cases))


def test_the_random_masks_hold_all_there_is_to_compare(samples):
    answers = [one for _, own in samples.values() for one in own]
    texts = [one["recovered"] for one in answers if isinstance(one.get("recovered"), str)]
    refused = ["refused" in one for one in answers]
    chains = [leak[2] for one in answers for leak in one.get("leaks", ())]
    kinds = {kind for one in answers for row in one.get("tiles") or () for kind in row}
    assert 20 <= sum(refused) < len(answers) / 10
    assert len(texts) >= 50 and len(chains) >= 500 and max(map(len, chains)) >= 4
    assert kinds == {"full", "partial", "empty"}
    assert {one["transitive"] for one in answers if "transitive" in one} == {True, False}


# ---------------------------------------------------------------------- a matrix that was pasted

ANSWER_MATRIX = """
function answer(text) {
  try { return readMatrix(text); } catch (error) { return error.message; }
}
"""
TRIANGLE = torch.ones(3, 3).tril()
WIDE = torch.ones(30, 30).tril()  # a row is printed on several lines
#: Texts, and the matrix that each holds.
PASTED = {
    text: matrix.bool().tolist()
    for matrix in (TRIANGLE, WIDE)
    for text in (
        *(str(matrix.to(dtype)) for dtype in (torch.float32, torch.float16, torch.bool, torch.int64, torch.int32)),
        *(shown(matrix.numpy().astype(kind)) for kind in ("f4", "f8", "?", "u1") for shown in (str, repr)),
        *(str(matrix.to(dtype).tolist()) for dtype in (torch.float32, torch.bool, torch.int64)),
        "\n".join(" ".join(map(str, row)) for row in matrix.tolist()),
        "\n".join("".join(".x"[int(cell)] for cell in row) for row in matrix.tolist()),
        "\n".join(f"{row}," for row in matrix.int().tolist()),
        f"mask = torch.tensor(\n    {matrix.int().tolist()},\n)\n",
        str(matrix[None, None]).replace("])", "], device='cuda:0', dtype=torch.int32)"),
        str(matrix.clone().requires_grad_()),
    )
}
SEVERAL = "the text holds several matrices; this page shows one"
UNREAD = "with brackets, a matrix is a list, an array or a tensor, such as [[1, 0], [1, 1]]"
#: Texts that hold no matrix, and what the page says of them.
UNFIT = {
    str(TRIANGLE.expand(2, 3, 3)): SEVERAL,
    str(TRIANGLE.expand(2, 1, 3, 3)): SEVERAL,
    "[[1., 0.5], [0., 1.]]": 'row 0 holds "0.5"; a matrix is made of 0 and 1',
    "[[1, 0], [10, 11]]": 'row 1 holds "10"; a matrix is made of 0 and 1',
    str(torch.ones(40, 40)): 'row 0 holds "..."; a matrix is made of 0 and 1',
    "((1, 0), (1, 1))": 'row 0 holds "("; a matrix is made of 0 and 1',
    "1 0\n[1, 1]": UNREAD,
    "[1, 0]\n1 1": UNREAD,
    "[1, 0],\n1 1": UNREAD,
    "[1, 0": UNREAD,
    "[[1, 0], [1]]": "row 1 has 1 numbers, but row 0 has 2",
    "[[]]": "the matrix has no rows yet",
}
MATRICES = PASTED | UNFIT


def test_what_python_prints_of_a_matrix_is_that_matrix_in_a_browser(browser):
    found = browser.execute_script(ANSWER_MATRIX + "return arguments[0].map(answer);", [*MATRICES])
    require_equal([*MATRICES], [*MATRICES.values()], found)


def test_what_python_prints_of_a_matrix_is_that_matrix_in_node():
    if shutil.which("node") is None:
        pytest.skip("no node on the path: the page's code is compared with Python in a browser alone")
    require_equal([*MATRICES], [*MATRICES.values()], in_node([*MATRICES], ("fields.js",), ANSWER_MATRIX))


# ---------------------------------------------------------------------- the file


def test_the_page_is_what_its_parts_make():
    assert PAGE.read_text(encoding="utf-8") == build.page(), "run: python docs/interactive/build.py"


def test_the_page_reads_nothing_from_the_network():
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"'\s)]+", text)) == {
        "http://www.w3.org/2000/svg"
    }  # the name of SVG, no address
    reading = r"<link|<img|<iframe|\bsrc=|@import|url\(|fetch\(|XMLHttpRequest|^\s*import\b|\bimport\("
    assert not re.search(reading, text, re.MULTILINE)


def test_the_page_knows_every_builder_with_its_arguments():
    text = build.read("masks.js")
    table = text[text.index("const BUILDERS = {") : text.index("/** The mask of a builder;")]
    known = {
        name: re.findall(r'\{ name: "(\w+)"', body)
        for name, body in re.findall(r"^  (\w+): \{\n(.*?)^  \},$", table, re.MULTILINE | re.DOTALL)
    }
    assert known == {name: list(inspect.signature(builder).parameters) for name, builder in BUILDERS.items()}


# ---------------------------------------------------------------------- recordings


@pytest.fixture(scope="module")
def recordings() -> dict:
    return json.loads(record.FILE.read_text(encoding="utf-8"))


def shape(value: object) -> object:
    """Names and kinds of what a recording holds, of lists their first element."""
    if isinstance(value, dict):
        return {name: shape(own) for name, own in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else type(value).__name__


def test_the_script_makes_recordings_of_the_form_that_the_page_reads(recordings):
    made = json.loads(json.dumps(record.record(2, (0, 2))))
    assert shape(made["batch"]) == shape(recordings["batch"])
    assert made.keys() == recordings.keys() and made["losses"].keys() == recordings["losses"].keys()
    assert shape(made["searches"][0]["steps"]) == shape(recordings["searches"][0]["steps"])


def test_the_recorded_search_keeps_its_rules(recordings):
    for search in recordings["searches"]:
        for step, following in zip(search["steps"], search["steps"][1:], strict=False):
            going = [one for one in step["candidates"] if one["fate"] == "goes on"]
            texts = [[*step["rows"][one["row"]]["tokens"], one["token"]] for one in going]
            assert [row["tokens"] for row in following["rows"]] == texts
            assert [row["total"] for row in following["rows"]] == [one["total"] for one in going]
        ended = sum(one["fate"] == "finished" for step in search["steps"] for one in step["candidates"])
        assert ended == len(search["hypotheses"]) == search["beam"]
        for one in search["hypotheses"]:
            assert one["score"] == pytest.approx(np.mean(one["logProbs"]), abs=1e-3)


def test_the_recorded_batch_is_learnt(recordings):
    first, last = recordings["batch"]["snapshots"][0], recordings["batch"]["snapshots"][-1]
    assert last["update"] == recordings["updates"] >= 200
    means = [np.mean([one["label"] for one in own["predictions"]]) for own in (first, last)]
    assert means[1] > 5 * means[0]
    assert sum(len(row["predictions"]) for row in recordings["batch"]["rows"]) == len(first["predictions"])
    objectives = {one["objective"] for row in recordings["batch"]["rows"] for one in row["predictions"]}
    assert objectives == set(recordings["losses"]) == set(record.NAMES)


# ---------------------------------------------------------------------- in the browser


def text_of(driver, name: str) -> str:
    return driver.find_element("id", name).get_attribute("textContent")


def enter(driver, name: str, value: object) -> None:
    """Sets a field as a reader does, with the events of typing."""
    driver.execute_script(
        "const field = document.getElementById(arguments[0]); field.value = arguments[1];"
        "for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, { bubbles: true }));",
        name,
        str(value),
    )


def vectors_text(driver) -> dict[str, list[int]]:
    lines = text_of(driver, "mask-vectors").splitlines()
    return {line.partition("=")[0].strip(): json.loads(line.partition("=")[2]) for line in lines}


def test_the_page_renders_without_a_complaint(browser):
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    for name in ("mask", "packing", "search", "training"):
        assert browser.find_elements("css selector", f"#{name}-picture svg path.cell-visible"), name
    assert len(browser.find_elements("css selector", "#search-rows tbody tr")) == 1
    assert browser.find_elements("css selector", "#training-losses polyline")


@pytest.mark.parametrize("name", BUILDERS)
def test_the_page_shows_what_is_chosen(browser, name):
    enter(browser, "mask-name", name)
    values = random_values(np.random.default_rng(5), name)
    for parameter, value in zip(inspect.signature(BUILDERS[name]).parameters, values, strict=True):
        text = "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else value
        enter(browser, f"mask-{parameter}", text)
    mask = BUILDERS[name](*values)
    assert text_of(browser, "mask-error") == ""
    expected = {side: vars(mask)[side].tolist() for side in ("query_step", "key_start", "key_stop")}
    assert vectors_text(browser) == expected
    paths = browser.find_elements("css selector", "#mask-picture .cell-hidden")
    squares = sum((path.get_attribute("d") or "").count("M") for path in paths)
    assert squares == int((~mask.dense()).sum())
    found: dict[str, object] = {}
    exec(text_of(browser, "mask-python"), found)
    assert found["mask"] == mask


def test_the_page_says_what_leaks_and_what_is_wrong(browser):
    enter(browser, "mask-name", "sliding_window")
    for name, value in (("length", 6), ("left", 1), ("right", 1)):
        enter(browser, f"mask-{name}", value)
    enter(browser, "mask-predicts", "next")
    leaks = masks.leaks(masks.sliding_window(6, 1, right=1), range(5), range(1, 6))
    assert [item.text for item in browser.find_elements("css selector", "#mask-leaks li")] == [
        str(one) for one in leaks
    ]
    assert text_of(browser, "mask-transitive").startswith("Not transitive")
    enter(browser, "mask-predicts", "own")
    enter(browser, "mask-pairs", "0:2")
    assert text_of(browser, "mask-leaks") == "query 0 sees key 1, which sees key 2, its own label"
    enter(browser, "mask-left", -1)
    assert text_of(browser, "mask-error") == "left must be an integer of at least 0"
    enter(browser, "mask-left", 1)
    assert text_of(browser, "mask-error") == ""


def test_a_matrix_is_recovered_or_refused(browser):
    browser.find_element("css selector", "[name=mask-origin][value=matrix]").click()
    dense = masks.tree([-1, 0, 0, 1]).dense()
    enter(browser, "mask-matrix-text", dense.int().tolist())
    found = masks.from_dense(dense)
    assert vectors_text(browser)["key_stop"] == found.key_stop.tolist()
    demonstrations = torch.eye(4).bool()
    demonstrations[3] = True
    enter(browser, "mask-matrix-text", "1000\n0100\n0010\n1111")
    with pytest.raises(ValueError) as refusal:
        masks.from_dense(demonstrations)
    assert text_of(browser, "mask-fits") == f"No: {refusal.value}."
    # The keyboard: one cell down and to the left end, then the space key changes it.
    picture = browser.find_element("css selector", "#mask-picture svg")
    browser.execute_script("arguments[0].focus()", picture)
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    picture.send_keys(keys.ARROW_DOWN)
    assert text_of(browser, "mask-cell") == "Query 1 does not see key 0."
    picture.send_keys(" ")
    assert browser.find_element("id", "mask-matrix-text").get_attribute("value").splitlines()[1] == "1 1 0 0"
    assert text_of(browser, "mask-cell") != ""
    enter(browser, "mask-matrix-text", "10\n1")
    assert text_of(browser, "mask-error") == "row 1 has 1 numbers, but row 0 has 2"
    browser.find_element("css selector", "[name=mask-origin][value=builder]").click()


def test_documents_are_packed_into_tiles(browser):
    before = text_of(browser, "packing-count")
    enter(browser, "packing-tile", 8)
    row = masks.pack([masks.seq2seq(6, 3), masks.left_to_right(7), masks.bidirectional(4)], 24)
    some, full = (int(kind.sum()) for kind in visible_tiles(row, 8))
    assert (
        text_of(browser, "packing-count")
        == f"{full} full, {some - full} partial, {9 - some} empty: {some} of 9 tiles are read."
    )
    assert before != text_of(browser, "packing-count")
    browser.find_element("id", "packing-add").click()
    assert len(browser.find_elements("css selector", "#packing-documents li")) == 4
    browser.find_elements("css selector", "#packing-documents button")[-1].click()
    enter(browser, "packing-length", 10)
    assert text_of(browser, "packing-error").startswith("document 1 does not fit")
    enter(browser, "packing-length", 24)


def test_recordings_are_stepped_through(browser, recordings):
    search = recordings["searches"][0]
    for _ in range(2):
        browser.find_element("id", "search-next").click()
    shown = [row.text for row in browser.find_elements("css selector", "#search-rows tbody tr")]
    texts = [" ".join(row["tokens"]) for row in search["steps"][2]["rows"]]
    assert len(shown) == len(texts) and all(line.endswith(text) for line, text in zip(shown, texts, strict=True))
    first = text_of(browser, "training-question")
    browser.find_element("id", "training-next").click()
    prediction = recordings["batch"]["rows"][0]["predictions"][1]
    assert f"“{prediction['label']}”" in text_of(browser, "training-question") != first
    enter(browser, "training-updates", 0)
    guesses = [row.text.split()[0] for row in browser.find_elements("css selector", "#training-guesses tbody tr")]
    asked = recordings["batch"]["snapshots"][0]["predictions"][prediction["number"]]
    assert guesses[:4] == [symbol for symbol, _ in asked["guesses"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_readable_on_a_phone(browser, scheme):
    """Nothing but pictures, tables and code is wider than the screen, which can be scrolled by themselves."""
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    open_on_phone(browser, PAGE)
    wide, background, colour = browser.execute_script(
        "const style = getComputedStyle(document.body);"
        "return [document.documentElement.scrollWidth, style.backgroundColor, style.color];"
    )
    assert wide <= 360
    lightness = [sum(map(int, re.findall(r"\d+", value)[:3])) for value in (background, colour)]
    assert (lightness[0] > lightness[1]) == (scheme == "light") and abs(lightness[0] - lightness[1]) > 400
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
