"""Any model of the hub, or of a folder, through sentence-transformers (Reimers & Gurevych, 2019).

Texts and, with models such as CLIP, photographs. Weights come from safetensors alone, no code of
the model's is run, and the revision is remembered.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from likewise.errors import InputError
from likewise.io.hub import EXTRA, HubModel, fetch, locate
from likewise.io.json import JsonObject, read_json
from likewise.io.regular import open_regular
from likewise.items.encoders.protocol import Batch, Features, checked_features

KIND = "sentence-transformers"
OURS = "sentence_transformers."  # where the classes of a model may come from
# What that library would open: an address, or a name that ends like a file's.
_ADDRESSES = ("http://", "https://", "data:")
_MEDIA = (
    *(".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp"),
    *(".mp4", ".avi", ".mov", ".wmv", ".flv", ".mkv", ".mp3", ".wav", ".ogg", ".flac", ".aac"),
)


class Transformer(Protocol):
    """What we use of a SentenceTransformer."""

    def encode(
        self, inputs: list[object], *, batch_size: int, show_progress_bar: bool
    ) -> object: ...


@dataclass(frozen=True)
class SentenceEncoder:
    """A pretrained model, at one revision."""

    name: str
    """As a person gave it: a name at the hub, or a folder."""
    folder: Path
    """Where its files are on this machine."""
    revision: str | None
    """The commit at the hub; None for a folder."""
    sha256: str
    """Of the model's files."""

    @classmethod
    def open(cls, model: str, revision: str | None = None) -> SentenceEncoder:
        """From the hub, its cache on this machine, or a folder."""
        found = locate(model, revision)
        if isinstance(found, HubModel):
            folder = fetch(found)
            name, commit = found.name, folder.name
        else:
            folder, name, commit = found, model, None
        _check_safe(folder, name)
        return cls(name, folder, commit, _digest(folder))

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{KIND} {self.sha256}".encode()).hexdigest()

    @cached_property
    def model(self) -> Transformer:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise InputError(f"{self.name} needs sentence-transformers: {EXTRA}.") from error
        try:
            opened: Transformer = SentenceTransformer(
                str(self.folder),
                trust_remote_code=False,
                local_files_only=True,
                model_kwargs={"use_safetensors": True},
            )
        except Exception as error:  # that library's, and those of all it stands on
            reason = " ".join(str(error).split())[:300]
            raise InputError(f"{self.name} cannot be opened as an encoder: {reason}") from error
        return opened

    def encode(self, batch: Batch) -> Features:
        given: list[object] = [_only_text(x) if isinstance(x, str) else x for x in batch]
        try:
            found = self.model.encode(given, batch_size=len(given), show_progress_bar=False)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            kind = "texts" if isinstance(batch[0], str) else "photographs"
            raise InputError(
                f"{self.name} cannot take {kind} ({type(error).__name__}: {error}); choose a "
                "model that is made for them."
            ) from error
        return checked_features(found, len(given), self.name)

    def record(self) -> JsonObject:
        """What `restore` needs to find it again."""
        return {"model": self.name, "revision": self.revision, "sha256": self.sha256}

    @classmethod
    def restore(cls, about: JsonObject) -> SentenceEncoder:
        """The very model that a run was fitted with, here or from the hub."""
        name, revision, sha256 = (about.get(key) for key in ("model", "revision", "sha256"))
        if not isinstance(name, str) or not isinstance(revision, str | None):
            raise InputError("the run describes no encoder of ours; copy it again.")
        try:
            found = cls.open(name, revision)
        except InputError as error:
            raise InputError(
                f"the run needs the encoder {name}: {error} (--embed FOLDER says where it is)"
            ) from error
        if found.sha256 != sha256:
            raise InputError(
                f"{name} is not the model that the run was fitted with: its files have changed; "
                "give that one with --embed."
            )
        return found


def _only_text(text: str) -> str:
    """The text so that sentence-transformers sees no address and no file's name in it: to models
    of several kinds of input it would open those."""
    lower = text.lower()
    return f" {text} " if lower.startswith(_ADDRESSES) or lower.endswith(_MEDIA) else text


def _check_safe(folder: Path, name: str) -> None:
    """Weights as safetensors, and no class of the model's own."""
    if not any(folder.rglob("*.safetensors")):
        raise InputError(
            f"{name} has no weights as safetensors, and others could run code; choose a model "
            "that has them."
        )
    modules = folder / "modules.json"
    listed = read_json(modules) if modules.is_file() else []
    parts = listed if isinstance(listed, list) else [listed]
    kinds = [part.get("type") if isinstance(part, dict) else part for part in parts]
    strange = [kind for kind in kinds if not str(kind).startswith(OURS)]
    if strange:
        raise InputError(
            f"{name} needs code of its own ({strange[0]}), which is never run; choose another."
        )


def _digest(folder: Path) -> str:
    """Of every file of data, so that a changed model is seen."""
    found = hashlib.sha256()
    names = sorted(
        path.relative_to(folder).as_posix()
        for pattern in ("*.json", "*.txt", "*.model", "*.safetensors")
        for path in folder.rglob(pattern)
    )
    for name in names:
        with open_regular(folder / name) as file:
            inner = hashlib.file_digest(file, "sha256").hexdigest()
        found.update(f"{name} {inner}\n".encode("utf-8", "surrogateescape"))
    return found.hexdigest()
