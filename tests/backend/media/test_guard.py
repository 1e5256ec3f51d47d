from __future__ import annotations

import pytest

from backend.errors import MediaError
from backend.media.guard import Guard, is_public

PUBLIC = "93.184.215.14"


def guard(*hosts: str, answers: list[str] | None = None, private: bool = False) -> Guard:
    return Guard(
        label_studio_url="http://10.0.0.5:8080", hosts=hosts, private=private,
        resolver=lambda host, port: [PUBLIC] if answers is None else answers,
    )


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1",
        "::1", "::", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:1::1",
        "ff02::1", "::7f00:1", "no address",
        "fec0::1", "::ffff:0:7f00:1", "3fff::1", "5f00::1", "192.0.0.8", "192.88.99.1",
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)
    with pytest.raises(MediaError, match="private address"):
        guard("*", answers=[address]).admit("http://img.example.org/a.png")


def test_public_addresses() -> None:
    assert all(is_public(address) for address in (PUBLIC, "2606:4700::1111", "::ffff:8.8.8.8"))


def test_one_private_answer_among_public_ones_is_enough_to_refuse() -> None:
    with pytest.raises(MediaError, match="private address"):
        guard("*", answers=[PUBLIC, "127.0.0.1"]).admit("http://img.example.org/a.png")


def test_only_listed_hosts() -> None:
    listed = guard("img.example.org", "*.cdn.example.org")
    assert listed.admit("https://IMG.example.org./a?b=c").path == "/a?b=c"
    assert listed.admit("https://a.cdn.example.org/a").address == PUBLIC
    for url in ("https://cdn.example.org/a", "https://evilimg.example.org/a", "https://img.example.org.evil.com/a"):
        with pytest.raises(MediaError, match="POLYVOX_MEDIA_HOSTS"):
            listed.admit(url)


def test_label_studio_may_be_private_but_only_at_its_very_origin() -> None:
    own = guard(answers=["10.0.0.5"]).admit("http://10.0.0.5:8080/data/upload/1/a.png")
    assert own.own and own.address == "10.0.0.5" and own.netloc == "10.0.0.5:8080"
    with pytest.raises(MediaError, match="POLYVOX_MEDIA_HOSTS"):
        guard(answers=["10.0.0.5"]).admit("http://10.0.0.5:9090/")


def test_where_label_studio_redirects_the_address_is_judged_all_the_same() -> None:
    assert not guard().admit("https://bucket.s3.example.org/x", sent_by_label_studio=True).own
    with pytest.raises(MediaError, match="private address"):
        guard(answers=["169.254.169.254"]).admit("http://metadata.example/", sent_by_label_studio=True)


@pytest.mark.parametrize("url", 
    ["http://u:p@img.example.org/", "gopher://img.example.org/", "http:///x", "http://img.example.org:99999/"],
)
def test_strange_addresses(url: str) -> None:
    with pytest.raises(MediaError):
        guard("*").admit(url)


def test_private_networks_can_be_allowed() -> None:
    assert guard("nas.lan", answers=["192.168.1.9"], private=True).admit("http://nas.lan/a").address == "192.168.1.9"


def test_a_name_that_does_not_resolve() -> None:
    def nobody(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    with pytest.raises(MediaError, match="cannot be found") as caught:
        Guard(label_studio_url="", hosts=["*"], resolver=nobody).admit("http://img.example.org/")
    assert caught.value.retry
