"""Reports as Markdown and HTML."""

from hippogpu.evaluate.pages import Code, Heading, Picture, Rows, Text, as_html, as_markdown


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


def test_html_marks_code_bold_and_links() -> None:
    page = as_html([Text("`a_b` is **best**, see [docs](method.md)")], title="t")
    assert '<code>a_b</code> is <strong>best</strong>, see <a href="method.md">docs</a>' in page


def test_html_holds_its_pictures_and_asks_for_no_file() -> None:
    page = as_html([Picture("p.svg", "c", "<?xml version='1.0'?><svg><g/></svg>")], title="t")
    assert ("<svg><g/></svg>" in page, "<?xml" in page, "src=" in page) == (True, False, False)
