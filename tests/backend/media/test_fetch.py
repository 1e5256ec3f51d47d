"""Fetching from a server that does its worst."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from backend.errors import MediaError
from backend.media import Fetcher, FileCache, Guard, Limits, MediaReader
from tests.backend.media.server import PICTURE, FileServer, file_server


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as running:
        yield running


@pytest.fixture
def other() -> Iterator[FileServer]:
    with file_server() as running:
        yield running


def fetcher(label_studio_url: str = "", *, private: bool = True, limit: int = 100_000, seconds: float = 5.0) -> Fetcher:
    return Fetcher(
        Guard(label_studio_url=label_studio_url, hosts=["127.0.0.1", "pictures.test"], private=private, resolver=local),
        limits=Limits(bytes=limit, seconds=seconds, redirects=2), authorization=lambda: "Token secret",
    )


def local(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


def fetch(fetcher: Fetcher, url: str) -> bytes:
    into = io.BytesIO()
    fetcher.fetch(url, into)
    return into.getvalue()


def test_a_file_comes_whole_and_the_host_is_addressed_by_name(server: FileServer) -> None:
    assert fetch(fetcher(), f"http://pictures.test:{server.port}/cat.png?v=1") == PICTURE
    (path, headers), = server.seen
    assert path == "/cat.png?v=1" and headers["Host"] == f"pictures.test:{server.port}"


def test_the_token_goes_to_label_studio_and_to_nobody_else(server: FileServer, other: FileServer) -> None:
    server.redirects["/data/upload/1/a.png"] = f"{other.url}/signed.png"
    assert fetch(fetcher(server.url), f"{server.url}/data/upload/1/a.png") == PICTURE
    assert server.seen[0][1]["Authorization"] == "Token secret"
    assert "Authorization" not in other.seen[0][1]
    assert fetch(fetcher(server.url), f"{other.url}/cat.png") == PICTURE
    assert "Authorization" not in other.seen[1][1]


def test_a_redirect_to_a_private_address_is_refused(server: FileServer, other: FileServer) -> None:
    server.redirects["/data/upload/1/a.png"] = f"http://127.0.0.1:{other.port}/internal"
    with pytest.raises(MediaError, match="private address"):
        fetch(fetcher(server.url, private=False), f"{server.url}/data/upload/1/a.png")
    assert not other.seen


@pytest.mark.parametrize("path", ["/api/current-user/token", "/data/upload/../../api/users", "/"])
@pytest.mark.parametrize("begins", ["elsewhere", "label studio"])
def test_no_redirect_has_label_studio_asked_for_anything_but_a_file(
    path: str, begins: str, server: FileServer, other: FileServer
) -> None:
    first = other if begins == "elsewhere" else server
    first.redirects["/data/upload/1/a.png"] = f"{server.url}{path}"
    with pytest.raises(MediaError, match="not to one of its files"):
        fetch(fetcher(server.url), f"{first.url}/data/upload/1/a.png")
    assert not [seen for seen, _ in server.seen if seen != "/data/upload/1/a.png"]


@pytest.mark.parametrize("location", ["file:///etc/passwd", "gopher://127.0.0.1/", "http://elsewhere.test/"])
def test_redirects_are_judged_like_addresses(server: FileServer, location: str) -> None:
    server.redirects["/a.png"] = location
    with pytest.raises(MediaError):
        fetch(fetcher(), f"{server.url}/a.png")


def test_redirects_end(server: FileServer) -> None:
    server.redirects["/a.png"] = "/a.png"
    with pytest.raises(MediaError, match="redirects more than 2 times"):
        fetch(fetcher(), f"{server.url}/a.png")
    assert len(server.seen) == 3


def test_the_connection_goes_to_the_address_that_was_judged(server: FileServer) -> None:
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])  # a name server that would answer differently the second time
    asked = []

    def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return next(answers)

    guard = Guard(label_studio_url="", hosts=["pictures.test"], private=True, resolver=rebinding)
    assert fetch(Fetcher(guard, limits=Limits()), f"http://pictures.test:{server.port}/cat.png") == PICTURE
    assert asked == ["pictures.test"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/missing.png", "answered 404"), ("/busy.png", "answered 503"), ("/endless.png", "larger than 0\\.1 MB"),
        ("/announced-huge.png", "larger than 0\\.1 MB"), ("/bomb.png", "compressed"),
        ("/broken-off.png", "cannot be reached|broke off"),
    ],
)
def test_bad_answers(server: FileServer, path: str, words: str) -> None:
    with pytest.raises(MediaError, match=words):
        fetch(fetcher(), server.url + path)


@pytest.mark.parametrize("path", ["/drip.png", "/silent.png"])
def test_time_is_bounded_even_when_a_byte_comes_now_and_then(server: FileServer, path: str) -> None:
    begin = time.monotonic()
    with pytest.raises(MediaError, match=r"within 0\.4 s") as caught:
        fetch(fetcher(seconds=0.4), server.url + path)
    assert time.monotonic() - begin < 2.0
    assert caught.value.retry


def test_nobody_there() -> None:
    with pytest.raises(MediaError, match="cannot be reached"):
        fetch(fetcher(), "http://127.0.0.1:1/cat.png")


def test_errors_name_no_path_and_no_query(server: FileServer) -> None:
    with pytest.raises(MediaError) as caught:
        fetch(fetcher(), f"{server.url}/missing.png?signature=secret")
    assert "missing" not in str(caught.value) and "secret" not in str(caught.value)


def reader(server: FileServer, folder: Path, max_mb: float = 1.0) -> MediaReader:
    cache = FileCache(folder, max_mb=max_mb)
    return MediaReader(fetcher(server.url), cache, label_studio_url=server.url, max_bytes=100_000)


def test_a_file_is_fetched_once_while_it_is_cached(server: FileServer, tmp_path: Path) -> None:
    media = reader(server, tmp_path)
    assert media.read("/data/upload/1/a.png") == media.read("/data/upload/1/a.png") == PICTURE
    assert len(server.seen) == 1


def test_a_failed_fetch_leaves_nothing_and_is_tried_again(server: FileServer, tmp_path: Path) -> None:
    media = reader(server, tmp_path)
    for _ in range(2):
        with pytest.raises(MediaError, match="404"):
            media.read(f"http://pictures.test:{server.port}/missing.png")
    assert len(server.seen) == 2 and not list(tmp_path.iterdir())


def test_the_cache_is_bounded_and_drops_the_least_recently_used(tmp_path: Path) -> None:
    cache = FileCache(tmp_path, max_mb=0.003)
    for key in "abc":
        cache.get(key, lambda file: file.write(bytes(1000)))
        time.sleep(0.01)
    cache.get("a", lambda file: file.write(b"never"))
    time.sleep(0.01)
    cache.get("d", lambda file: file.write(bytes(1000)))
    filled = []
    for key in "adcb":
        cache.get(key, lambda file, key=key: filled.append(key))
    assert filled == ["b"]


def test_empty_files_and_values_that_are_no_text(server: FileServer, tmp_path: Path) -> None:
    media = reader(server, tmp_path)
    with pytest.raises(MediaError, match="empty"):
        media.read(f"http://pictures.test:{server.port}/empty.png")
    with pytest.raises(MediaError, match="no address"):
        media.read(["a", "b"])
