"""The page on which people judge: two items, "same kind?", and every answer stored at once.

`serve` runs it, `create_app` makes the web application for other servers and for tests, and
`read_judgements` and `export_judgements` take the answers out of the database again. Reading a
database needs nothing but the standard library: the web server is imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from likewise.label.export import export_judgements
from likewise.pairs.formats.label_database import is_judgements_database, read_judgements

if TYPE_CHECKING:
    from likewise.label.app import create_app
    from likewise.label.server import serve

__all__ = [
    "create_app",
    "export_judgements",
    "is_judgements_database",
    "read_judgements",
    "serve",
]


def __getattr__(name: str) -> Any:
    if name == "create_app":
        from likewise.label.app import create_app

        return create_app
    if name == "serve":
        from likewise.label.server import serve

        return serve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
