"""Text, Markdown and HTML of a report say the same, fit their place and cannot be steered."""

from html.parser import HTMLParser

import pytest
from support.sample_reports import hostile, sample

from skdp.inspection import PrivacyReport


def as_text(data):
    return str(PrivacyReport(data))


def as_markdown(data):
    return PrivacyReport(data).to_markdown()


def as_html(data):
    return PrivacyReport(data).to_html()


def as_fragment(data):
    return PrivacyReport(data)._repr_html_()


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
    "each record, which is one row of the data",  # for whom
    "DPPipeline: Steps that prepare and learn.",  # what
    "epsilon 1 at delta 1e-06",  # at what cost
    "the total of all charges is epsilon=1.1",
    "73.2 %",  # how sure somebody becomes
    "Caveat: random",  # what limits the promise
    "Not protected: classes",
)


def test_the_first_page_has_all_that_must_be_read_and_fits_on_paper():
    first, _, _ = as_text(sample()).partition("\nDetails\n=======\n")
    assert len(first.splitlines()) <= 55  # A4 holds some 60 lines of this size
    for text in FIRST:
        assert text in " ".join(first.split())
    assert as_markdown(sample()).index("\n## Details\n") < as_markdown(sample()).index("\n### ")


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
    assert "there is no finite limit" in page
    assert "None" not in page and "nan" not in page.replace("finance", "")
    for absent in ("Rests on", "guesses blindly", "share: ", "Caveat", "Further numbers"):
        assert absent not in page


def test_what_is_left_does_not_look_larger_than_it_is():
    data = sample()
    data["ledger"]["left"] = [{"delta": 1e-6, "epsilon": 0.99996}]
    assert "0.9999\n" in as_text(data)


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.0268, "2.68 %"), (0.26812, "26.9 %"), (0.99951, "99.951 %"), (1.0, "no limit")],
)
def test_chances_are_rounded_up(share, shown):
    data = sample()
    data["attacker"]["posteriors"][2]["posterior"] = share
    assert shown in as_text(data)


@pytest.mark.parametrize(
    ("epsilon", "shown"), [(1.00001, "1.001"), (12345.6, "1.235e+04"), (1.31234e-7, "1.313e-07")]
)
def test_epsilons_never_look_smaller_than_they_are(epsilon, shown):
    data = sample()
    data["guarantee"]["curve"] = [{"delta": 1e-9, "epsilon": epsilon}]
    assert shown in as_text(data)


@pytest.mark.parametrize(
    ("chance", "told"), [(1e-6, "1 in 1,000,000"), (1.5e-6, "1 in 666,000"), (0.3, "30 %")]
)
def test_rare_chances_are_told_as_one_in_so_many_and_never_rarer(chance, told):
    data = sample()
    for one in data["ledger"]["means"]:
        one["except_with_probability"] = chance
    assert f"at most {told}" in " ".join(as_text(data).split())
