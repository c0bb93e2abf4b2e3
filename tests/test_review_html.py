"""The HTML sheet: as a document, and in a real browser from the first key to the file that is imported."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect, sync_playwright

from rag_judge.review.html_words import WORDS
from rag_judge.review.labels import ItemLabel
from rag_judge.review.reading import read_sheet
from rag_judge.review.sheet import ReviewContext, ReviewTexts, Sheet
from rag_judge.review.writing import write_sheet
from tests.report_pages import Page as Document
from tests.review_sheets import exported, known, sheet_of, texts

HOSTILE = [
    pytest.param("<script>alert(1)</script>", id="script"),
    pytest.param("</script><script>alert(1)</script>", id="closes the element"),
    pytest.param("<!-- <script>", id="opens a comment"),
    pytest.param("'\"><img src=x onerror=alert(1)>", id="breaks out of an attribute"),
    pytest.param("{{ 7 * 7 }}{% for x in y %}${x}%s{0}{n}", id="template"),
    pytest.param("half a pair \ud83d, nul \x00, \u2028", id="characters that files lose"),
]
both_languages = pytest.mark.parametrize("lang", ["en", "zh"])


def page_text(sheet: Sheet, tmp_path: Path) -> str:
    (path,) = write_sheet(sheet, tmp_path / "sheet.html", "html")
    return path.read_text(encoding="utf-8")


# --- the page as a document -------------------------------------------------------------------------------------------


@both_languages
def test_the_page_is_whole_and_names_nothing_outside_itself(lang: str, tmp_path: Path) -> None:
    html = page_text(sheet_of([texts()], lang=lang), tmp_path)
    page = Document(html)
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert page.faults == []
    assert len(ids) == len(set(ids))
    assert not page.tags() & {"img", "link", "iframe", "object", "embed", "base", "audio", "video"}
    for tag, attrs in page.elements:
        assert not {"src", "srcset", "href", "action", "style"} & attrs.keys(), tag
        assert not [name for name in attrs if name.startswith("on")], tag
    assert "url(" not in page.style
    assert "innerHTML" not in html


def test_the_one_script_is_allowed_by_its_hash(tmp_path: Path) -> None:
    html = page_text(sheet_of([texts()]), tmp_path)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in html


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_text_cannot_leave_the_json_it_travels_in(hostile: str, tmp_path: Path) -> None:
    html = page_text(sheet_of([texts(hostile, hostile, ((hostile, hostile),))], annotator=hostile), tmp_path)
    assert len(re.findall("<script", html)) == 2
    assert "<script>alert" not in html
    assert "<img" not in html
    assert Document(html).faults == []


def test_both_languages_have_the_same_words() -> None:
    assert WORDS["en"].keys() == WORDS["zh"].keys()
    for name, text in WORDS["en"].items():
        assert re.findall(r"\{\w+\}", text).sort() == re.findall(r"\{\w+\}", WORDS["zh"][name]).sort(), name


# --- in a browser -----------------------------------------------------------------------------------------------------

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ["no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-sync"]


def browser_test(test: Callable[..., None]) -> Callable[..., None]:
    skipped = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt-get install chromium)")(test)
    slow: Callable[..., None] = pytest.mark.slow(skipped)
    return slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=[f"--{flag}" for flag in QUIET])
        yield chromium
        chromium.close()


class Desk:
    """A reviewer's browser with one sheet open; what it asks of the network and what goes wrong in it are noted."""

    def __init__(self, context: BrowserContext, path: Path) -> None:
        self.context = context
        self.path = path
        self.asked: list[str] = []
        self.faults: list[str] = []
        self.page = self.open()

    def open(self) -> Page:
        page = self.context.new_page()
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda message: self.faults.append(message.text))
        page.on("dialog", lambda dialog: self.faults.append(dialog.message))
        page.goto(self.path.as_uri())
        self.page = page
        return page

    def press(self, keys: str) -> None:
        for key in keys.split():
            self.page.keyboard.press(key)

    def go_to(self, question: str) -> None:
        """Leaf forward from the first item to the one that asks this."""
        self.press("k k k")
        for _ in range(3):
            if self.page.locator(".question").inner_text() == question:
                return
            self.press("j")
        raise AssertionError(question)

    def save(self, tmp_path: Path, by: str = "e") -> Path:
        with self.page.expect_download() as download:
            self.press(by)
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        return path

    def chosen(self) -> list[str]:
        return [box.get_attribute("value") or "" for box in self.page.locator("[aria-checked=true]").all()]


@pytest.fixture
def desk(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """Opens a sheet in a browser of its own; at the end, nothing may have gone wrong or been asked of the network."""
    desks: list[Desk] = []

    def opened(sheet: Sheet, *, width: int = 1280, closes_help: bool = True, script: str | None = None) -> Desk:
        (path,) = write_sheet(sheet, tmp_path / f"{sheet.sheet_id}.html", "html")
        context = browser.new_context(viewport=ViewportSize(width=width, height=800), accept_downloads=True)
        if script:
            context.add_init_script(script)
        desks.append(Desk(context, path))
        if closes_help:
            desks[-1].press("Escape")
        return desks[-1]

    yield opened
    for one in desks:
        one.context.close()
        assert one.faults == []
        assert [url for url in one.asked if not url.startswith(("file:", "blob:"))] == []


THREE = [
    texts(
        "Return?",
        "Within 30 days of delivery, for 20 €.",
        (("r#1", "Within 14 days of delivery."), ("r#2", "Costs 20 €.")),
    ),
    texts("试用期多久?", "试用期为 3 个月。", (("hr#1", "新员工试用期为三个月。"),)),
    texts("Nothing?", "", ()),
]


def ids_of(sheet: Sheet) -> dict[str, str]:
    return {item.texts.question: item.id for item in sheet.items}


@browser_test
@both_languages
def test_a_sheet_is_judged_by_keys_alone_and_imported(desk: Callable[..., Desk], lang: str, tmp_path: Path) -> None:
    sheet = sheet_of(THREE, lang=lang)
    at = desk(sheet, closes_help=False)
    expect(at.page.locator("dialog")).to_be_visible()
    at.press("n Escape")  # no key judges anything behind the instructions
    expect(at.page.locator("dialog")).to_be_hidden()
    assert at.chosen() == []
    at.go_to("Return?")
    at.press("n y n n n")
    expect(at.page.locator(".free.asked #critique")).to_be_visible()
    at.press("r ArrowDown Escape c")
    at.page.keyboard.type("“30 days” stands nowhere; context 1 says 14. yes no 我")
    at.press("Escape m")
    at.page.keyboard.type("=1+1")
    at.press("Escape")
    expect(at.page.locator(".free.asked")).to_have_count(0)
    at.go_to("试用期多久?")
    at.press("1 u 3 y Backspace 3 n")
    path = at.save(tmp_path)
    ids = ids_of(sheet)
    back = read_sheet(path, known(sheet))
    critique = "“30 days” stands nowhere; context 1 says 14. yes no 我"
    values = {"grounded": False, "complete": True, "should_abstain": False, "did_abstain": False, "passed": False}
    assert back.labels == {
        ids["Return?"]: ItemLabel({**values, "cause": "leak"}, critique, "=1+1"),
        ids["试用期多久?"]: ItemLabel({"grounded": None, "should_abstain": False}),
    }
    assert back.blank == (ids["Nothing?"],)
    assert set(back.seconds) == {ids["Return?"], ids["试用期多久?"]}


@browser_test
def test_one_item_is_shown_at_a_time_with_its_contexts_as_cards_in_rank_order(desk: Callable[..., Desk]) -> None:
    at = desk(sheet_of(THREE))
    at.go_to("Return?")
    cards = at.page.locator("article.card")
    assert cards.all_inner_texts() == ["1\nr#1\n\nWithin 14 days of delivery.", "2\nr#2\n\nCosts 20 €."]
    expect(at.page.locator(".answer")).to_have_text("Within 30 days of delivery, for 20 €.")
    at.go_to("Nothing?")
    expect(cards).to_have_count(0)
    expect(at.page.locator("#contexts")).to_contain_text("nothing was retrieved")
    expect(at.page.locator(".answer")).to_have_text("(the answer is empty)")


@browser_test
@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_texts_are_shown_as_text(desk: Callable[..., Desk], hostile: str) -> None:
    at = desk(sheet_of([ReviewTexts(hostile, (hostile,), ((ReviewContext(hostile, hostile),),), (hostile,))]))
    shown = hostile.replace("\ud83d", "\ufffd").replace("\x00", "␀")
    at.press("h")
    for place in (".question", ".answer", ".context", ".history", ".card .id"):
        assert at.page.locator(place).text_content() == shown
    assert at.page.locator("main img, main script").count() == 0


@browser_test
def test_highlights_are_off_until_asked_for_and_again_for_the_next_item(desk: Callable[..., Desk]) -> None:
    at = desk(sheet_of(THREE))
    marks = at.page.locator("mark")
    at.go_to("Return?")
    expect(marks).to_have_count(0)
    at.press("h")
    assert at.page.locator("mark.nowhere").all_inner_texts() == ["30"]
    assert at.page.locator("mark.number").all_inner_texts() == ["20", "20"]
    assert at.page.locator("mark.shared").all_inner_texts() == ["days of delivery", "days of delivery"]
    at.go_to("试用期多久?")
    expect(marks).to_have_count(0)
    at.press("h")
    assert at.page.locator(".answer .number").all_inner_texts() == ["3"]  # 三 in the context is the same number
    assert at.page.locator(".context .shared").all_inner_texts() == ["试用期为"]
    at.press("h")
    expect(marks).to_have_count(0)


@browser_test
def test_progress_is_kept_in_the_browser_and_undone_step_by_step(desk: Callable[..., Desk]) -> None:
    at = desk(sheet_of(THREE))
    at.press("y n")
    at.page.reload()
    expect(at.page.locator("dialog")).to_be_hidden()
    assert at.chosen() == ["yes", "no"]
    at.press("u z")
    assert at.chosen() == ["yes", "no"]
    at.press("1 n c")
    at.page.keyboard.type("why")
    at.press("Escape j z z")
    expect(at.page.locator("#critique")).to_have_value("")
    assert at.chosen() == ["yes", "no"]
    at.press("z")
    expect(at.page.locator("#status")).to_have_text("Nothing to undo.")


@browser_test
def test_all_answered_items_are_counted_and_open_ones_found(desk: Callable[..., Desk]) -> None:
    at = desk(sheet_of(THREE))
    at.press("y y y y y")
    expect(at.page.locator("#progress")).to_have_text("Item 1 of 3 · 1 done")
    expect(at.page.locator("#status")).to_have_text("This item is done. Next: j")
    at.press("j j g")
    expect(at.page.locator("#progress")).to_have_text("Item 2 of 3 · 1 done")
    at.press("y y y y y j y y y y y g")
    expect(at.page.locator("#status")).to_have_text("No item has an open question.")


@browser_test
def test_a_partial_file_is_taken_back_on_another_machine(desk: Callable[..., Desk], tmp_path: Path) -> None:
    sheet = sheet_of(THREE)
    first = desk(sheet)
    first.go_to("Return?")
    first.press("n c")
    first.page.keyboard.type("half done")
    saved = first.save(tmp_path, "Control+s")
    second = desk(sheet)
    second.page.locator("#file").set_input_files(saved)
    expect(second.page.locator("#status")).to_contain_text("1 items")
    second.go_to("Return?")
    assert second.chosen() == ["no"]
    expect(second.page.locator("#critique")).to_have_value("half done")
    second.press("2 y")
    again = second.save(tmp_path)
    expect(second.page.locator("#unsaved")).to_have_text("Everything is exported")
    values = {"grounded": False, "complete": True}
    assert read_sheet(again, known(sheet)).labels == {ids_of(sheet)["Return?"]: ItemLabel(values, "half done")}


@browser_test
def test_a_file_of_another_sheet_or_with_other_values_is_not_taken(desk: Callable[..., Desk], tmp_path: Path) -> None:
    sheet, other = sheet_of(THREE), sheet_of(THREE, seed=2)
    at = desk(sheet)
    path = tmp_path / "given.json"
    for given, status in (
        (exported(other, {other.items[0].id: {"grounded": "no"}}), "of another sheet"),
        (exported(sheet, {sheet.items[0].id: {"grounded": "perhaps"}}), "item or a value"),
        (exported(sheet, {other.items[0].id: {"grounded": "no"}}), "item or a value"),
        ([1], "not a file that this page exported"),
    ):
        path.write_text(json.dumps(given), encoding="utf-8")
        at.page.locator("#file").set_input_files(path)
        expect(at.page.locator("#status")).to_contain_text(status)
        assert at.chosen() == []


@browser_test
def test_no_letter_meant_for_the_page_changes_the_cause(desk: Callable[..., Desk]) -> None:
    at = desk(sheet_of(THREE))
    at.page.locator("#cause").select_option("invented")
    at.page.locator("#cause").focus()
    at.press("j k")
    expect(at.page.locator("#cause")).to_have_value("invented")
    expect(at.page.locator("#progress")).to_contain_text("Item 1 of 3")


@browser_test
def test_scores_are_given_by_digits_and_winners_by_letters(desk: Callable[..., Desk], tmp_path: Path) -> None:
    scale = sheet_of(THREE, mode="scale")
    at = desk(scale)
    at.press("4 j 2 j u")
    assert [one.values["score"] for one in read_sheet(at.save(tmp_path), known(scale)).labels.values()] == [4, 2, None]
    pair = ReviewTexts("q?", ("left", "right"), (texts().contexts[0], ()))
    pairs = sheet_of([pair, pair, pair, pair], mode="pairwise")
    at = desk(pairs)
    expect(at.page.locator("#contexts h3")).to_have_text(["Contexts of A", "Contexts of B"])
    at.press("a j b j t j u")
    back = read_sheet(at.save(tmp_path), known(pairs)).labels
    assert [back[item.id].values["winner"] for item in pairs.items] == ["A", "B", "tie", None]


@browser_test
def test_a_browser_that_keeps_nothing_is_said_and_still_exports(desk: Callable[..., Desk], tmp_path: Path) -> None:
    forgets = "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('denied') }})"
    sheet = sheet_of(THREE)
    at = desk(sheet, script=forgets)
    expect(at.page.locator("#kept")).to_be_visible()
    at.press("y")
    assert len(read_sheet(at.save(tmp_path), known(sheet)).labels) == 1


@browser_test
@both_languages
@pytest.mark.parametrize("width", [360, 800, 1280])
def test_nothing_runs_off_the_side(desk: Callable[..., Desk], lang: str, width: int) -> None:
    long = texts("x" * 400, "y" * 3_000, (("z" * 300, "w" * 3_000),))
    at = desk(sheet_of([long], lang=lang), width=width)
    assert at.page.evaluate("document.documentElement.scrollWidth") <= width
    at.page.get_by_role("button", name=WORDS[lang]["export"]).click(trial=True)
    at.page.locator("#note").click(trial=True)


@browser_test
def test_a_hundred_thousand_characters_are_shown_whole(desk: Callable[..., Desk]) -> None:
    answer = "word 17 " * 12_500
    at = desk(sheet_of([texts("Long?", answer, (("d#1", answer),))]))
    at.press("h y")
    assert at.page.locator(".answer").text_content() == answer
    assert at.chosen() == ["yes"]
