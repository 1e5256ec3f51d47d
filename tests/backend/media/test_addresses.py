"""Addresses with any character in them: as a browser would send them."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from backend.errors import MediaError
from backend.media import Fetcher, Guard, Limits, read_reference
from backend.media.addresses import as_browser, location_text
from tests.backend.media.server import PICTURE, FileServer, file_server


@pytest.mark.parametrize(("written", "sent"), [  # as Chromium's URL class writes them
    ("http://a.example/7-schön.png", "http://a.example/7-sch%C3%B6n.png"),
    ("http://a.example/a b\"<>`{}^.png", "http://a.example/a%20b%22%3C%3E%60%7B%7D%5E.png"),
    ("http://a.example\\x\\y z", "http://a.example/x/y%20z"),
    ("HTTP:\\\\a.example/x", "http://a.example/x"),
    ("http://a.example/100%.png?q=ä 1'#part", "http://a.example/100%.png?q=%C3%A4%201%27"),
    ("http://a.example/%E2%82%AC%20.png", "http://a.example/%E2%82%AC%20.png"),
    ("http://a.example/x\ty\r\n.png", "http://a.example/xy.png"),
    ("http://a.example/\ud83d.png", "http://a.example/%EF%BF%BD.png"),
    ("http://bücher.example/x", "http://xn--bcher-kva.example/x"),
    ("http://a.example/\u4f8b/\u202ex.png?\u4f8b", "http://a.example/%E4%BE%8B/%E2%80%AEx.png?%E4%BE%8B"),
    (" /data/upload/1/a b.png ", "/data/upload/1/a%20b.png"),
    ("s3://bucket/schön", "s3://bucket/schön"), ("http://a.example?x=\\y", "http://a.example?x=\\y"),
    ("http://a.example/#a?b", "http://a.example/"),
])
def test_written_and_sent(written: str, sent: str) -> None:
    assert as_browser(written) == sent
    assert as_browser(sent) == sent


@pytest.mark.parametrize("header", ["/sch\u00f6n.png", "/sch\u00c3\u00b6n.png", "/sch\u4f8b.png"])
def test_a_location_is_read_as_utf8_and_else_by_its_bytes(header: str) -> None:
    expected = {"/sch\u00f6n.png": "/sch%F6n.png", "/sch\u00c3\u00b6n.png": "/schön.png", "/sch\u4f8b.png": header}
    assert location_text(header) == expected[header]


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as found:
        yield found


def fetch(server: FileServer, path: str) -> bytes:
    guard = Guard(label_studio_url="", hosts=["127.0.0.1"], private=True)
    into = io.BytesIO()
    Fetcher(guard, limits=Limits(bytes=100_000, seconds=2.0)).fetch(server.url + path, into)
    return into.getvalue()


@pytest.mark.parametrize(("path", "asked"), [
    ("/7-schön.png", "/7-sch%C3%B6n.png"), ("/a b.png?key=ü&x=1 2", "/a%20b.png?key=%C3%BC&x=1%202"),
    ("/a\\b.png", "/a/b.png"), ("/\ud83d.png", "/%EF%BF%BD.png"), ("/x\r\nHost: evil", "/xHost:%20evil"),
])
def test_any_character_can_be_asked_for(server: FileServer, path: str, asked: str) -> None:
    assert fetch(server, path) == PICTURE
    assert server.seen[-1][0] == asked


@pytest.mark.parametrize(("location", "asked"), [
    ("/schön.png", "/sch%C3%B6n.png"), ("/a b.png", "/a%20b.png"), ("neu/ß.png?ä", "/neu/%C3%9F.png?%C3%A4"),
    ("\\x.png", "/x.png"),
])
def test_redirects_lead_to_any_character(server: FileServer, location: str, asked: str) -> None:
    server.redirects["/old.png"] = location.encode().decode("latin-1")
    assert fetch(server, "/old.png") == PICTURE
    assert server.seen[-1][0] == asked


def test_a_redirect_to_nowhere_fails_with_a_sentence(server: FileServer) -> None:
    server.redirects["/old.png"] = "http://[::1"
    with pytest.raises(MediaError, match=r"no address|cannot be read"):
        fetch(server, "/old.png")


def test_a_cloud_key_may_hold_anything() -> None:
    value = "s3://bucket/sch\u00f6n \udcff.png"
    found = read_reference(value, label_studio_url="http://ls.example", task=3, inline_limit=9)
    assert found.url.startswith("http://ls.example:80/tasks/3/resolve/?fileuri=") and found.url.isascii()


@pytest.mark.parametrize(("address", "sent"), [
    ("http://us\u00e9r:p\u00e4 ss@h.example/a", "http://us%C3%A9r:p%C3%A4%20ss@h.example/a"),
    ("http://u:p@m\u00fcller.example/\u00e4", "http://u:p@xn--mller-kva.example/%C3%A4"),
    ("http://u%40x:p@h.example:80/a", "http://u%40x:p@h.example:80/a"),
])
def test_names_before_the_host_are_no_part_of_it(address: str, sent: str) -> None:
    assert as_browser(address) == sent
