"""What models read in an evaluation: tokens of a data set's texts or pictures, encoded once, kept beside the cells."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from backend import ports
from backend.commands.base import Arguments
from backend.errors import ClientError
from backend.formats import Dataset
from backend.settings import Settings

if TYPE_CHECKING:
    from model.encoders import Encoder
    from model.encoders.image import ImageEncoder
    from model.evaluate.problem import TokensOf

_PICTURES_AT_ONCE = 32


def tokens_for(
    dataset: Dataset, arguments: Arguments, settings: Settings, folder: Path, device: str, progress: ports.Progress
) -> tuple[TokensOf, Mapping[str, str]]:
    """Tokens of every task: of its picture, where the arguments or a usual field name one, else of its text; and these
    texts by task.

    Raises ClientError and FormatError, in a sentence, for what cannot be read.
    """
    from backend.formats.pictures import picture_field, picture_files
    from backend.formats.problems import texts_of
    from model.evaluate.token_file import no_content, tokens_of

    if arguments.image and arguments.text:
        raise ClientError("Texts and pictures are not evaluated together; choose --text or --image.")
    source: Path = arguments.dataset
    field = arguments.image or ("" if arguments.text or not source.is_dir() else picture_field(dataset))
    if field:
        from backend.formats.pictures import PictureFiles

        files = picture_files(dataset, source if source.is_dir() else source.parent, field)
        pictures = PictureFiles(files, image_encoder(arguments.encoder or settings.image_encoder, device))
        return tokens_of(
            pictures.keys, encoder_id=pictures.id, encoder=lambda: pictures, folder=folder, batch=_PICTURES_AT_ONCE,
            progress=lambda share: progress(share, "encoding pictures"),
        ), {}
    texts = texts_of(dataset, arguments.text)
    if not texts:
        progress(0.0, "no content: every task looks the same to a model")
        return no_content, {}
    encoder = text_encoder(arguments.encoder or settings.encoder, device)
    return tokens_of(
        texts, encoder_id=encoder.id, encoder=lambda: encoder, folder=folder,
        progress=lambda share: progress(share, "encoding texts"),
    ), texts


def text_encoder(name: str, device: str) -> Encoder:
    from model.encoders.text import TextEncoder

    return TextEncoder.load(name, device=device)


def image_encoder(name: str, device: str) -> ImageEncoder:
    from backend.decoding.pool import DecoderPool
    from model.encoders.image import ImageEncoder

    return ImageEncoder.load(name, device=device, decoder=DecoderPool())
