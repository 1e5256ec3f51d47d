import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.labeling.html_text import MAX_CHARACTERS, strip_html


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("plain", "plain"),
        ("<b>bold</b> and <i>more</i>", "bold and more"),
        ("<p>one</p><p>two<br/>three</p>", "one\ntwo\nthree"),
        ("R&amp;D &lt;b&gt; &#128512; &nbsp;x", "R&D <b> 😀 x"),
        ("a<script>alert('</p>' + 1 < 2)</script>b", "ab"),
        ("<style>p { a < b }</style>seen<STYLE>x</STYLE>", "seen"),
        ("<head><title>t</title></head><body onload='evil()'>seen", "seen"),
        ("<head><title>t</title><body>seen", "seen"),
        ("a<!-- hidden <b>x</b> -->b<!-- unclosed", "ab"),
        ("<!DOCTYPE html><?php echo 1 ?>seen", "seen"),
        ("3 < 4 and 5 > 4", "3 < 4 and 5 > 4"),
        ("<img src=x onerror=alert(1)>seen", "seen"),
        ("x<template><template>1</template>2</template>y", "xy"),
        ("unclosed <a href='", "unclosed <a href='"),
        ("", ""),
    ],
)
def test_only_what_a_reader_sees_is_left(html, text):
    assert strip_html(html) == text


@pytest.mark.parametrize(
    "piece",
    ["<!", "<!--", "<a ", "</", "<![", "&#", "<script>", "<a b='", "<?", "<head></b>", "<style><", "&", "<p>", "<aa"],
)
def test_broken_markup_takes_linear_time(piece):
    started = time.process_time()
    strip_html(piece * (MAX_CHARACTERS // len(piece)))
    assert time.process_time() - started < 5.0  # quadratic time would be minutes


def test_of_a_very_long_page_head_and_tail_are_read():
    text = strip_html("first " + "<p>x</p>" * MAX_CHARACTERS + " last")
    assert text.startswith("first") and text.endswith("last") and len(text) < MAX_CHARACTERS


@settings(derandomize=True, max_examples=200)
@given(st.text(st.sampled_from("<>/!-?&;#ab script'\"=\n"), max_size=60))
def test_any_text_is_read_without_error(html):
    strip_html(html)
