"""Who may ask, as whom, and how often: tokens, signed values, names, hosts and rates.

Pure parts without a web framework; `likewise.label.guard` puts them before the application.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import json
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable

from likewise.errors import InputError
from likewise.io.json import Json, parse_json

MAX_NAME = 64
_NAME_PUNCTUATION = frozenset(" ._-'@+")


def clean_annotator(name: object) -> str:
    """A person's name as it is stored: letters, digits and a little punctuation, at most 64.

    It must begin with a letter or a digit, so that no spreadsheet takes it for a formula.
    """
    if not isinstance(name, str):
        raise InputError("give your name as text.")
    cleaned = " ".join(unicodedata.normalize("NFC", name[: 4 * MAX_NAME]).split())
    if not cleaned:
        raise InputError("type your name or initials, so that your answers count as yours.")
    if len(cleaned) > MAX_NAME:
        raise InputError(f"use a name of at most {MAX_NAME} characters.")
    usable = all(c in _NAME_PUNCTUATION or unicodedata.category(c)[0] in "LMN" for c in cleaned)
    if not usable or not cleaned[0].isalnum():
        raise InputError(
            "use letters, digits, spaces and . _ - ' @ + only, a letter or digit first."
        )
    return cleaned


class Signer:
    """Signs what goes out to a browser, and believes only that when it comes back.

    The key comes from the database, so that sessions outlive a restart, and from the token, so
    that a new token ends them.
    """

    def __init__(self, key: bytes, token: str | None) -> None:
        self._key = hmac.digest(key, f"likewise session {token or ''}".encode(), "sha256")

    def sign(self, purpose: str, value: Json) -> str:
        """A text that carries a JSON value and proves that we wrote it for that purpose."""
        body = _base64(json.dumps(value).encode())
        return f"{body}.{self._mac(purpose, body)}"

    def verify(self, purpose: str, text: str) -> Json:
        """The value of a signed text; None for anything that we did not write."""
        body, _, mac = text.rpartition(".")
        if not same_secret(mac, self._mac(purpose, body)):
            return None
        return parse_json(base64.urlsafe_b64decode(body + "==="), "a signed value")

    def _mac(self, purpose: str, body: str) -> str:
        message = f"{purpose}\n{body}".encode("utf-8", "replace")
        return _base64(hmac.digest(self._key, message, "sha256"))


def _base64(data: bytes) -> str:
    """Without the padding, whose "=" would have to be quoted in a cookie."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def same_secret(given: str, expected: str) -> bool:
    """Whether two secrets are equal, in a time that tells nothing about either."""
    # Digests, because compare_digest tells lengths apart and refuses text beyond ASCII.
    left, right = (hashlib.sha256(text.encode("utf-8", "replace")) for text in (given, expected))
    return hmac.compare_digest(left.digest(), right.digest())


def is_loopback(host: str) -> bool:
    """Whether a host name or address to bind to can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class HostCheck:
    """Which ``Host`` headers are ours.

    A page of a stranger can have its own name resolve to this machine (DNS rebinding) and then
    read what we answer; its requests carry that name. So names must be known. Where the server
    listens to other machines, a bare address is fine too: no name, no rebinding.
    """

    def __init__(self, names: Iterable[str] = (), *, any_address: bool = False) -> None:
        self._names = {"localhost", *(name.lower() for name in names)}
        self._any_address = any_address

    def allows(self, header: str) -> bool:
        """Whether a request with this ``Host`` header is meant for us."""
        host = _without_port(header).lower()
        if host in self._names:
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return self._any_address or address.is_loopback


def _without_port(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


class RateLimit:
    """So many requests a second for each key, with a reserve for bursts (a token bucket each)."""

    def __init__(
        self,
        per_second: float,
        burst: float,
        *,
        max_keys: int = 10_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second, self._burst = per_second, burst
        self._max_keys, self._clock = max_keys, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, key: str) -> bool:
        """Take one from the key's reserve; False when it is empty."""
        now = self._clock()
        left, then = self._buckets.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._per_second)
        allowed = left >= 1
        self._buckets[key] = (left - 1 if allowed else left, now)
        if len(self._buckets) > self._max_keys:
            self._buckets.popitem(last=False)
        return allowed
