"""Reports as Markdown and HTML."""

import html
import re
import xml.etree.ElementTree as Xml

from hippogpu.evaluate import Interval
from hippogpu.evaluate.pages import Code, Heading, Picture, Rows, Text, as_html, as_markdown, code, plain
from hippogpu.evaluate.plot import Dot, interval_plot


def test_a_table_is_one_of_markdown_whatever_its_cells_hold() -> None:
    text = as_markdown([Rows(["a", "b"], [["x|y", "1\n[0, 2]"]])])
    assert text == "| a | b |\n|---|---|\n| x\\|y | 1 [0, 2] |\n"


def test_blocks_of_markdown_are_apart_by_a_blank_line() -> None:
    page = as_markdown([Heading("T", 1), Text("Some `code`."), Code("run me"), Picture("p.svg", "a plot")])
    assert page == "# T\n\nSome `code`.\n\n```sh\nrun me\n```\n\n![a plot](p.svg)\n"


def test_html_escapes_what_a_question_may_hold() -> None:
    page = as_html([Rows(["q"], [["<script>alert(1)</script>"]]), Text("a & b")], title="<t>")
    assert ("<script>" in page, "&lt;script&gt;" in page, "<title>&lt;t&gt;</title>" in page) == (False, True, True)


def test_a_link_that_would_run_something_stays_text() -> None:
    assert "href" not in as_html([Text('[x](javascript:alert) "q"')], title="t")


HOSTILE = "[click](//evil) <img src=x> &lt; `c` **b** a\\\\|b | c_d _e_ x\ry\nz ~~s~~ 4*5*6 ![i](p)"


def test_what_others_wrote_is_shown_in_html_as_it_is() -> None:
    for block in (Text(plain(HOSTILE)), Heading(plain(HOSTILE)), Rows(["q"], [[plain(HOSTILE)]])):
        body = as_html([block], title="t").split("<body>")[1]
        assert not set(re.findall(r"<(\w+)", body)) - {"p", "h2", "table", "thead", "tbody", "tr", "th", "td"}
        assert html.escape(HOSTILE.replace("\r", " ").replace("\n", " ")) in body


def test_what_others_wrote_is_one_escaped_cell_of_markdown() -> None:
    rows = as_markdown([Rows(["q"], [[plain("a|b \\\\| <img> [x](y) `c` *d*\r\ne &amp; f_g")]])]).splitlines()
    assert rows[2:] == [r"| a\|b \\\\\| \<img\> \[x\](y) \`c\` \*d\* e \&amp; f_g |"]


def test_code_of_others_does_not_end_early() -> None:
    page = as_html([Text(f"see {code('a` <b> **c**')}")], title="t")
    assert "see <code>a&#x27; &lt;b&gt; **c**</code>" in page


def test_html_marks_code_bold_and_links() -> None:
    page = as_html([Text("`a_b` is **best**, see [docs](method.md)")], title="t")
    assert '<code>a_b</code> is <strong>best</strong>, see <a href="method.md">docs</a>' in page


def test_html_holds_its_pictures_and_asks_for_no_file() -> None:
    page = as_html([Picture("p.svg", "c", "<?xml version='1.0'?><svg><g/></svg>")], title="t")
    assert ("<svg><g/></svg>" in page, "<?xml" in page, "src=" in page) == (True, False, False)


def test_a_plot_is_xml_with_a_dot_and_a_bar_for_each_name() -> None:
    dots = [Dot("a & <b>", Interval(0.5, 0.4, 0.7)), Dot("c", Interval(1.0, 1.0, 1.0))]
    names = [part.tag.rsplit("}", 1)[1] for part in Xml.fromstring(interval_plot("R@5", dots)).iter()]
    assert (names.count("circle"), names.count("line")) == (2, 2 + 6)


def test_a_bar_of_a_plot_spans_its_interval_on_an_axis_of_100_percent() -> None:
    lines = [
        part for part in Xml.fromstring(interval_plot("", [Dot("a", Interval(0.5, 0.2, 0.8))])).iter() if part.get("x1")
    ]
    assert [lines[-1].get("x1"), lines[-1].get("x2")] == [lines[1].get("x1"), lines[4].get("x1")]
