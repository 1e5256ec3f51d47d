"""Annotators' own tokens. What is stored is sealed already; nothing here can read it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, delete, select, update

from backend import records
from backend.store.engine import Database, from_us, to_us
from backend.store.schema import annotator_tokens as tokens


class SqlTokenStore:
    """`ports.TokenStore` on a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, token: records.AnnotatorToken) -> None:
        """See `ports.TokenStore`."""
        row = {
            "scope": token.scope, "annotator": token.annotator, "email": token.email, "sealed": token.sealed,
            "added_at": to_us(token.added_at), "problem": token.problem,
        }  # fmt: skip
        with self._db.write() as connection:
            self._db.upsert(connection, tokens, [row])

    def of(self, project: str) -> list[records.AnnotatorToken]:
        """See `ports.TokenStore`; by annotator."""
        statement = select(tokens).where(tokens.c.scope.in_(["", project])).order_by(tokens.c.scope)
        with self._db.read() as connection:
            found = {row.annotator: _token(row) for row in connection.execute(statement)}
        return [found[annotator] for annotator in sorted(found)]

    def all(self) -> list[records.AnnotatorToken]:
        """By scope, then e-mail."""
        with self._db.read() as connection:
            rows = connection.execute(select(tokens).order_by(tokens.c.scope, tokens.c.email))
            return [_token(row) for row in rows]

    def remove(self, scope: str, annotator: str) -> bool:
        """See `ports.TokenStore`."""
        with self._db.write() as connection:
            statement = delete(tokens).where(tokens.c.scope == scope, tokens.c.annotator == annotator)
            return connection.execute(statement).rowcount > 0

    def set_problem(self, scope: str, annotator: str, problem: str) -> None:
        """See `ports.TokenStore`."""
        with self._db.write() as connection:
            here = (tokens.c.scope == scope) & (tokens.c.annotator == annotator)
            connection.execute(update(tokens).where(here).values(problem=problem))


def _token(row: Row[Any]) -> records.AnnotatorToken:
    return records.AnnotatorToken(
        scope=row.scope, annotator=row.annotator, email=row.email, sealed=row.sealed,
        added_at=from_us(row.added_at), problem=row.problem,
    )  # fmt: skip
