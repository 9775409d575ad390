"""Models that others have trained: is the one that a person names here, or within reach?

Asked before anything heavy is imported, so that a name that leads nowhere costs no second. Of the
hub's files only data is taken: JSON, vocabularies and safetensors, no code and no pickle.
"""

from __future__ import annotations

import os
import re
import socket
import threading
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from likewise.errors import InputError

PROGRAMS = (".onnx", ".pt2")
SAFE_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")
EXTRA = "pip install 'likewise[embed]'"
PATIENCE = 0.6  # seconds to reach the hub in
ANSWER = 3.0  # seconds to hear from it whether it has a model
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_USUAL_OWNER = "sentence-transformers"  # of a name without one, as that library has it


@dataclass(frozen=True)
class HubModel:
    """A model of the hub, by its full name and, where one was asked for, its revision."""

    name: str
    revision: str | None = None

    @property
    def cached(self) -> Path | None:
        """Its folder on this machine; None where it is not there."""
        home = hub_cache() / f"models--{self.name.replace('/', '--')}"
        ref = home / "refs" / (self.revision or "main")
        commit = ref.read_text().strip() if ref.is_file() else self.revision
        folder = home / "snapshots" / (commit or "")
        return folder if commit and any(folder.rglob("*.safetensors")) else None


def hub_cache() -> Path:
    """Where the hub's own library keeps models."""
    home = os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub")


def locate(model: str, revision: str | None = None) -> Path | HubModel:
    """Where a model is: a file, a folder, or the hub; one sentence, at once, where it is nowhere.

    ``model`` is a file (.onnx, .pt2), a folder, or a name at the hub.
    """
    path = Path(model).expanduser()
    if path.suffix.lower() in PROGRAMS:
        if not path.is_file():
            raise InputError(f"there is no file {path} to embed with.")
        return path
    if model and path.is_dir():  # nothing is not the current folder
        _need_library()
        return path
    if not _NAME.fullmatch(model):
        raise InputError(
            f"there is no model {model or 'without a name'}: give an .onnx or .pt2 file, a folder, "
            "or a name at the hub such as all-MiniLM-L6-v2."
        )
    _need_library()
    found = HubModel(model if "/" in model else f"{_USUAL_OWNER}/{model}", revision)
    if found.cached is None:
        _check_reachable(found.name)
    return found


def fetch(model: HubModel) -> Path:
    """The folder of a model, downloaded where it is not here yet; data only, never code."""
    if (folder := model.cached) is not None:
        return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    patterns = [*SAFE_FILES, *(f"*/{pattern}" for pattern in SAFE_FILES)]
    try:
        return Path(snapshot_download(model.name, revision=model.revision, allow_patterns=patterns))
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        revision = f" of revision {model.revision}" if model.revision else ""
        raise InputError(
            f"the hub gave no model {model.name}{revision} ({str(error).strip().splitlines()[0]}); "
            "check its name."
        ) from error


def _need_library() -> None:
    if find_spec("sentence_transformers") is None:
        raise InputError(f"a model by its name needs sentence-transformers: {EXTRA}.")


def _check_reachable(name: str) -> None:
    """The hub answers and knows the model, or a sentence.

    In a thread, since the names of machines are looked up without limit.
    """
    address = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    parts = urlsplit(address)
    host, port = parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443)
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON"):
        raise InputError(
            f"the model {name} is not on this machine, and HF_HUB_OFFLINE forbids to fetch it."
        )
    proxied = bool(os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy"))
    reached, unknown = threading.Event(), threading.Event()

    def ask() -> None:
        try:
            if not proxied:
                socket.create_connection((host, port), timeout=PATIENCE).close()
            reached.set()
            with urlopen(Request(f"{address}/api/models/{name}", method="HEAD"), timeout=ANSWER):
                pass
        except HTTPError as error:
            if error.code in (401, 404):
                unknown.set()
        except OSError:
            return

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    if not reached.wait(PATIENCE):
        raise InputError(
            f"the model {name} is not on this machine and {host} cannot be reached; connect to "
            "the network, or give a folder or an .onnx file."
        )
    asking.join(ANSWER)
    if unknown.is_set():
        raise InputError(f"there is no model {name} at {host}; check its name.")
