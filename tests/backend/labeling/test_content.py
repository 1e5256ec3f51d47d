from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from backend.labeling.content import Content, Medium, modalities_of, pack, unpack

media = st.builds(Medium, modality=st.sampled_from(["image", "audio", "video"]), address=st.text(min_size=1))


@given(text=st.text(), media=st.lists(media, max_size=3), task=st.none() | st.integers(1, 9))
def test_a_packed_content_comes_back(text: str, media: list[Medium], task: int | None) -> None:
    kinds = modalities_of([one.modality for one in media])
    content = Content(text=text.lstrip("\x1e"), media=tuple(media), modalities=kinds, task=task)
    packed = pack(content)
    if packed and kinds:
        found = unpack(packed)
        assert (found.text, found.media, found.modalities) == (content.text, content.media, kinds)


@given(text=st.text())
def test_a_text_never_passes_for_media(text: str) -> None:
    forged = pack(Content(text="\x1e" + text))
    assert unpack(forged) == Content(text=forged)


def test_the_task_is_part_of_the_key_only_where_it_matters() -> None:
    def packed(address: str, task: int) -> str:
        picture = Medium(modality="image", address=address)
        return pack(Content(text="", media=(picture,), modalities=("image",), task=task))

    assert packed("https://example.org/a.png", 1) == packed("https://example.org/a.png", 2)
    assert packed("s3://bucket/a.png", 1) != packed("s3://bucket/a.png", 2)


def test_a_video_is_seen_and_heard() -> None:
    assert modalities_of(["video", "text"]) == ("audio", "text", "video")
