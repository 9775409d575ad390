"""The items as the page knows them: by keyed hashes, because a file's name may well tell its class.

Shared by both kinds of session, of pairs and of sorts.
"""

from __future__ import annotations

import base64
import hashlib

from likewise.io.json import JsonObject
from likewise.label.items import Items


class Catalogue:
    """Items by number, by id and by the key that stands for each on the page."""

    def __init__(self, items: Items, secret: bytes, show_names: bool = False) -> None:
        self.items, self._show_names = items, show_names
        self.index = {identity: k for k, identity in enumerate(items.ids)}
        self.keys = [_key(identity, secret) for identity in items.ids]
        self._by_key = {key: k for k, key in enumerate(self.keys)}

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, key: object) -> int | None:
        """The number of the item that goes by a key."""
        return self._by_key.get(key) if isinstance(key, str) else None

    def show(self, index: int) -> JsonObject:
        """An item as the page shows it."""
        shown: JsonObject = {}
        if self._show_names:
            shown["name"] = self.items.ids[index]
        if self.items.are_pictures:
            shown["picture"] = self.url(index)
        else:
            shown["cells"] = [list(cell) for cell in self.items.cells(index)]
        return shown

    def url(self, index: int) -> str:
        """The address of an item's picture."""
        return f"/items/{self.keys[index]}"


def _key(identity: str, secret: bytes) -> str:
    digest = hashlib.blake2b(identity.encode(), digest_size=12, key=secret).digest()
    return base64.urlsafe_b64encode(digest).decode()
