"""The exception tree of the backend. Each class knows the HTTP status that a client gets for it.

The message of a `ClientError` is shown to the client, so it says what is wrong and where, in one sentence, and carries
neither secrets nor label text. Everything else becomes a 500 with a reference id, and its details go to the log only.
"""

from __future__ import annotations


class PolyvoxError(Exception):
    """Base of everything that the backend raises on purpose."""

    status = 500


class ClientError(PolyvoxError):
    """The request cannot be served as it is; the message is meant for the caller."""

    status = 400


class NoVotes(ClientError):
    """A file has no votes, or none that can be read or used; the sentence says which, and why. Exit code 2."""


class NotFound(ClientError):
    """The thing asked for does not exist (any more)."""

    status = 404


class NotReady(ClientError):
    """The thing asked for is not there yet; asking again later can help."""

    status = 409


class TooMany(ClientError):
    """More of something than is kept; asking again later can help."""

    status = 429


class Busy(ClientError):
    """There is no room for it now; the same request may be served in a moment."""

    status = 503


class Unauthorized(ClientError):
    """Credentials are missing or wrong."""

    status = 401


class PayloadTooLarge(ClientError):
    """The body is over the limit."""

    status = 413


class LabelConfigError(ClientError):
    """The labeling configuration cannot be read; the message names the tag."""


class SettingsError(PolyvoxError):
    """An environment variable has an unusable value; the message names it and what it takes."""


class LabelStudioError(PolyvoxError):
    """Label Studio could not be used. `retry` says whether trying again later can help."""

    status = 502

    def __init__(self, message: str, *, retry: bool, http_status: int | None = None) -> None:
        super().__init__(message)
        self.retry = retry
        self.http_status = http_status


class BackupError(PolyvoxError):
    """A backup cannot be made or restored; the sentence says why and what to do, and nothing was changed."""


class MediaError(PolyvoxError):
    """A file that a task points to cannot be used; the sentence names no address and no content.

    `retry` says whether trying again later can help.
    """

    def __init__(self, message: str, *, retry: bool = False) -> None:
        super().__init__(message)
        self.retry = retry


class JobFailed(PolyvoxError):
    """A job ended with an expected failure; the message is recorded on its row. `retry_in_s` asks for another try."""

    def __init__(self, message: str, *, retry_in_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_in_s = retry_in_s
