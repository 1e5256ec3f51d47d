from __future__ import annotations

import base64

import pytest

from backend.errors import MediaError
from backend.media.references import Reference, read_reference

LABEL_STUDIO = "http://label.example.org:8080"


def read(value: str, *, url: str = LABEL_STUDIO, task: int | None = 7) -> Reference:
    return read_reference(value, label_studio_url=url, task=task, inline_limit=100)


@pytest.mark.parametrize(
    "value",
    [
        "/data/upload/3/ab-cat.png", "/data/local-files/?d=cats/1.png", "/tasks/7/resolve/?fileuri=czM6",
        "/projects/1/presign/?fileuri=x",
    ],
)
def test_files_of_label_studio(value: str) -> None:
    assert read(value) == Reference(kind="label-studio", url=LABEL_STUDIO + value)
    assert read(LABEL_STUDIO + value).kind == "label-studio"


def test_label_studio_below_a_path() -> None:
    url = "https://example.org/annotate"
    assert read("/data/upload/3/a.png", url=url).url == "https://example.org:443/annotate/data/upload/3/a.png"
    assert read("/annotate/data/upload/3/a.png", url=url).url == "https://example.org:443/annotate/data/upload/3/a.png"


def test_cloud_storage_goes_through_label_studio() -> None:
    found = read("s3://bucket/cats/1.png")
    encoded = found.url.partition("fileuri=")[2]
    assert found.kind == "label-studio" and found.url.startswith(LABEL_STUDIO + "/tasks/7/resolve/?")
    assert base64.urlsafe_b64decode(encoded) == b"s3://bucket/cats/1.png"


def test_other_hosts_are_the_web_even_when_they_look_alike() -> None:
    for url in ("http://label.example.org:8081/data/upload/1/a", "https://label.example.org:8080/data/upload/1/a"):
        assert read(url) == Reference(kind="web", url=url)
    assert read("http://LABEL.example.org.:8080/data/upload/1/a").kind == "label-studio"


def test_data_addresses() -> None:
    assert read("data:image/png;base64," + base64.b64encode(b"abc").decode()).data == b"abc"
    assert read("data:text/plain,a%20b").data == b"a b"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "no address"), ("  ", "no address"), ("cat.png", "neither a host"), ("//evil.example/x", "neither a host"),
        ("/api/users/", "not to one of its files"), (LABEL_STUDIO + "/api/projects/1/", "not to one of its files"),
        ("/data/upload/../../api/users/", "not to one of its files"),
        ("/data/upload/%2e%2e/%2e%2e/api", "not to one of"),
        ("/logout?next=/data/upload/1/x", "not to one of its files"),
        ("/x/data/upload/1/a.png", "not to one of its files"),
        ("file:///etc/passwd", "'file:'"), ("ftp://example.org/a", "'ftp:'"), ("javascript:alert(1)", "'javascript:'"),
        ("http://exa mple.org/", "cannot be read"), ("http://[::1/", "cannot be read"),
        ("/data\\upload\\..\\..\\api/users/", "not to one of its files"), ("\\api\\users", "not to one of its files"),
        ("\\\\evil.example/x", "neither a host"), ("http://p\udcffq.example/", "cannot be read"),
        ("data:image/png;base64", "no data"), ("data:image/png;base64,%%%", "base64"),
        ("data:,x" + "y" * 200, "larger"),
    ],
)
def test_what_is_no_file_is_refused_with_a_sentence(value: str, words: str) -> None:
    with pytest.raises(MediaError, match=words):
        read(value)


def test_without_label_studio_its_files_cannot_be_read() -> None:
    for value in ("/data/upload/1/a.png", "s3://bucket/a"):
        with pytest.raises(MediaError, match="LABEL_STUDIO_URL"):
            read(value, url="")
    with pytest.raises(MediaError, match="LABEL_STUDIO_URL"):
        read("s3://bucket/a", task=None)
