"""Text, Markdown and HTML of a report say the same, fit their place and cannot be steered."""

import re
from html.parser import HTMLParser

import pytest
from support.sample_reports import hostile, sample

from skdp._views import card, clean, fields, note, table
from skdp.inspection._report_blocks import Bullets, Fields, Heading, Table, Text
from skdp.inspection._report_page import page_of
from skdp.inspection._report_render import as_fragment, as_html, as_markdown, as_text
from skdp.inspection._report_texts import one_in, percent, rounded_up

WRITERS = (as_text, as_markdown, as_html, as_fragment)


class Page(HTMLParser):
    """Tags and text of a page; fails where tags do not match."""

    EMPTY = ("meta", "br")

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.words, self.attributes = [], [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)


def words_of(data):
    """Every cell and sentence of the page."""
    for block in page_of(data):
        match block:
            case Bullets(items):
                yield from items
            case Fields(pairs):
                yield from (str(value) for _, value in pairs if value is not None)
            case Table(_, rows):
                yield from (str(cell) for row in rows for cell in row)
            case _:
                yield block.text


@pytest.mark.parametrize("write", WRITERS)
def test_each_form_says_all_that_is_on_the_page(write):
    data = sample()
    page = write(data)
    if write in (as_html, as_fragment):
        page = " ".join(Page(page).words)
    page = " ".join(page.replace("\\", "").replace("&gt;", ">").split())
    for text in words_of(data):
        for word in text.split():
            assert word in page, text


def test_text_has_lines_of_eighty_characters_and_no_line_ends_in_a_space():
    lines = as_text(sample()).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines == [line.rstrip() for line in lines]
    # What does not fit in columns becomes a list.
    assert "    theorem: McSherry and Talwar 2007, theorem 6" in lines
    assert "first model        2  epsilon=1.1" in lines


def test_the_page_stands_alone_and_has_no_scripts():
    page = as_html(sample())
    parsed = Page(page)
    assert page.startswith("<!DOCTYPE html>\n<html lang=")
    assert "script" not in parsed.tags and "link" not in parsed.tags and "img" not in parsed.tags
    assert "http" not in page
    assert ("content", "width=device-width, initial-scale=1") in parsed.attributes
    assert "color-scheme:light dark" in page and "@media print" in page
    assert parsed.tags.count("h1") == 1


FIRST = (
    "Dr Adams",  # who answers
    "each record in the data",  # for whom
    "DPPipeline: Steps that prepare and learn.",  # what
    "epsilon 1 at delta 1e-06",  # at what cost
    "all charges together cost epsilon=1.1",
    "73.2 %",  # how sure somebody becomes
    "Caveat: random",  # what limits the promise
    "Not protected: classes",
)


def test_the_first_page_has_all_that_must_be_read_and_fits_on_paper():
    first, _, details = as_text(sample()).partition("\nDetails\n=======\n")
    assert len(first.splitlines()) <= 55  # A4 holds some 60 lines of this size
    for text in FIRST:
        assert text in " ".join(first.split())
    # Sections begin below it, and each of them is there.
    titles = [block.text for block in page_of(sample()) if isinstance(block, Heading)]
    assert titles[0] == "Details" and len(titles) > 15
    for title in titles[1:]:
        assert f"\n{title}\n{'-' * len(title)}\n" in details
    assert as_markdown(sample()).index("\n## Details\n") < as_markdown(sample()).index("\n### ")


@pytest.mark.parametrize("write", [as_html, as_fragment])
def test_sections_are_closed_below_the_first_page_and_are_printed(write):
    page = write(sample())
    first, _, details = page.partition("<h2>Details</h2>")
    titles = [block.text for block in page_of(sample()) if isinstance(block, Heading)]
    sections = re.findall(r"<details><summary><h3>(.*?)</h3></summary>", details)
    assert sections == titles[1:]
    assert "<details" not in first and details.count("</details>") == len(sections)
    for text in FIRST:
        assert text in first
    # Browsers that can, print what is closed; on paper of others stands that it is missing.
    assert "@media print{\n.skdp-view details::details-content{content-visibility:visible" in page
    assert "@supports not selector(::details-content)" in page
    assert page.count("This browser prints no section that is closed") == 1


def test_a_cell_says_of_which_column_it_is():
    assert ("data-label", "theorem") in Page(as_html(sample())).attributes


@pytest.mark.parametrize("write", WRITERS)
def test_no_text_steers_the_page_or_the_terminal(write):
    page = write(hostile(sample()))
    assert not set(page) & set("\x1b\x00\r\u202e\u2028\x9b")
    assert "alert" in page
    if write in (as_html, as_fragment):
        assert "script" not in Page(page).tags
        assert not [name for name, _ in Page(page).attributes if name.startswith("on")]
    if write is as_markdown:
        assert "<" not in page and "**b**" not in page and "[a]" not in page
        tables = [line for line in page.splitlines() if line.startswith("|")]
        assert all(" \\| " in line for line in tables if "alert" in line)


@pytest.mark.parametrize("write", WRITERS)
def test_what_is_not_known_is_left_out(write):
    data = sample(ledger=None, glossary=[])
    told = data["guarantee"]
    told |= {"epsilon": None, "delta": None, "curve": [], "conversions": [], "caveats": []}
    told |= {"mechanism": "", "source": ""}
    data["subject"]["steps"] = []
    data["attacker"]["test"] = None
    for release in data["releases"]:
        release |= {"step": None, "times": None, "size": None, "share": None, "sensitivity": None}
    page = write(data)
    assert "No ledger was given" in page
    assert "no finite number" in page
    assert "None" not in page and "nan" not in page.replace("finance", "")
    for absent in ("Rests on", "guesses blindly", "share: ", "Caveat", "Further numbers"):
        assert absent not in page


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.0268, "2.68 %"), (0.26812, "26.9 %"), (0.99951, "99.951 %"), (1.0, "100 %")],
)
def test_chances_are_rounded_up(share, shown):
    assert percent(share) == shown


def test_numbers_never_look_smaller_than_they_are():
    assert [rounded_up(x) for x in (0.0, 1.0, 1.00001, 0.3, 12345.6, 1.31234e-7)] == [
        "0",
        "1",
        "1.001",
        "0.3",
        "1.235e+04",
        "1.313e-07",
    ]


def test_a_caveat_stands_out():
    data = sample()
    assert '<p class="skdp-warning">Caveat: random_state' in as_html(data)
    assert "\n! Caveat: random_state" in as_text(data)
    assert "The caveats say why this does not hold as it stands" in " ".join(as_text(data).split())
    data["guarantee"]["caveats"] = []
    assert "caveats" not in as_text(data)
    data = sample()
    assert "\n> **Caveat: random\\_state" in as_markdown(data)


def test_empty_parts_of_a_view_leave_nothing():
    assert table(("a", "b"), []) == fields([("a", ""), ("b", "\n")]) == note(" ") == ""
    assert Page(card("<i>", note("x", warns=True))).tags == ["div", "style", "p", "p"]
    assert clean("a\x1b[31m b\nc\u202e") == "a b c"


def test_small_tables_stay_tables_on_a_telephone():
    assert 'class="skdp-small"' in table(("day", "charges"), [("2026-01-01", 3)])
    assert 'class="skdp-small"' not in table(("day", "charges"), [("2026-01-01", 40 * "x")])


def test_blocks_are_values():
    assert Text("a") == Text("a") != Text("a", warns=True)


def test_what_is_left_does_not_look_larger_than_it_is():
    data = sample()
    data["ledger"]["left"] = [{"delta": 1e-6, "epsilon": 0.99996}]
    assert "0.9999\n" in as_text(data)


def test_a_ledger_says_how_sure_all_results_can_make_somebody():
    page = " ".join(as_text(sample()).split())
    assert "at most 25.1 % now and at most 45.1 % when the whole budget is spent" in page
    assert "at most 1 in 10,000, which is at most ten times the delta of the ledger" in page


def test_what_was_read_from_the_data_stands_out():
    assert "! Nobody declared these: classes." in as_text(sample())
    data = sample()
    data["public"] = data["public"][:1]
    assert "Nobody declared these" not in as_text(data)


def test_shares_of_different_rows_are_explained():
    data = sample()
    assert "more than 100 %" not in " ".join(as_text(data).split())
    data["releases"][0]["share"] = 0.5
    assert "add up to more than 100 %" in " ".join(as_text(data).split())


def test_a_lay_reader_is_told_what_to_skip_and_who_said_what():
    page = " ".join(as_text(sample()).split())
    assert "Data visits Purpose not stated" in page and "Who answers for it Dr Adams" in page
    first = page.index("(for specialists)", page.index("The layers of"))
    assert page.index("What to ask before you agree") < first < page.index("Words ----")
    settings = page.index("Further settings")
    assert page.index("computed by rules") > settings > page.index("longer rows are scaled")


@pytest.mark.parametrize(
    ("chance", "told"),
    [(1e-6, "1 in 1,000,000"), (1.5e-6, "1 in 666,000"), (0.3, "30 %"), (0.0, "0")],
)
def test_rare_chances_are_told_as_one_in_so_many_and_never_rarer(chance, told):
    assert one_in(chance) == told
