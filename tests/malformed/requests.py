"""Malformed requests to the labelling server: each is answered with a 4xx and one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

JSON = {"x-likewise": "1", "content-type": "application/json"}


@dataclass(frozen=True)
class Request:
    """What is sent, by somebody who has joined as Ada; {ticket} is the pair she was asked."""

    name: str
    method: str = "POST"
    path: str = "/api/answer"
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=lambda: dict(JSON))


BODIES: dict[str, bytes] = {
    "empty": b"",
    "not json": b"same",
    "form": b"annotator=Ada&answer=same",
    "cut": b'{"annotator": "Ada"',
    "two": b'{"annotator": "Ada"}{"annotator": "Ada"}',
    "list": b'["Ada", "same"]',
    "text": b'"Ada"',
    "number": b"1e5",
    "null": b"null",
    "nested": b"[" * 6000,
    "nested objects": b'{"a":' * 1200,
    "endless number": b"9" * 8000,
    "endless number inside": b'{"annotator": ' + b"9" * 7000 + b"}",
    "not utf-8": b'{"annotator": "\xff"}',
    "utf-16": '{"annotator": "Ada"}'.encode("utf-16"),
    "pickle": b"\x80\x04\x95\x10\0\0\0\0\0\0\0\x8c\x05posix\x94\x8c\x06system\x94\x93.",
    "xml": b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>",
    "too large": b'{"annotator": "' + b"A" * 9000 + b'"}',
    "no fields": b"{}",
    "no ticket": b'{"annotator": "Ada", "answer": "same"}',
    "ticket null": b'{"annotator": "Ada", "ticket": null, "answer": "same"}',
    "ticket a number": b'{"annotator": "Ada", "ticket": 7, "answer": "same"}',
    "ticket a list": b'{"annotator": "Ada", "ticket": [], "answer": "same"}',
    "ticket invented": b'{"annotator": "Ada", "ticket": "abc.def", "answer": "same"}',
    "ticket of dots": b'{"annotator": "Ada", "ticket": "....", "answer": "same"}',
    "ticket of surrogates": b'{"annotator": "Ada", "ticket": "\\ud800.\\ud800", "answer": "same"}',
    "no answer": b'{"annotator": "Ada", "ticket": "{ticket}"}',
    "answer null": b'{"annotator": "Ada", "ticket": "{ticket}", "answer": null}',
    "answer true": b'{"annotator": "Ada", "ticket": "{ticket}", "answer": true}',
    "answer unknown": b'{"annotator": "Ada", "ticket": "{ticket}", "answer": "perhaps"}',
    "answer a list": b'{"annotator": "Ada", "ticket": "{ticket}", "answer": ["same"]}',
    "answer sql": b'{"annotator": "Ada", "ticket": "{ticket}", "answer": "same\'; DROP TABLE"}',
    "nobody": b'{"ticket": "{ticket}", "answer": "same"}',
    "somebody else": b'{"annotator": "Bo", "ticket": "{ticket}", "answer": "same"}',
    "a list of people": b'{"annotator": ["Ada"], "ticket": "{ticket}", "answer": "same"}',
}
UNDO: dict[str, bytes] = {
    "nothing": b'{"annotator": "Ada"}',
    "text": b'{"annotator": "Ada", "judgement": "1"}',
    "zero": b'{"annotator": "Ada", "judgement": 0}',
    "negative": b'{"annotator": "Ada", "judgement": -1}',
    "true": b'{"annotator": "Ada", "judgement": true}',
    "a fraction": b'{"annotator": "Ada", "judgement": 1.5}',
    "past 64 bits": b'{"annotator": "Ada", "judgement": 18446744073709551616}',
    "not there": b'{"annotator": "Ada", "judgement": 999999}',
}
JOIN: dict[str, bytes] = {
    "nobody": b"{}",
    "null": b'{"annotator": null}',
    "blank": b'{"annotator": "  "}',
    "a number": b'{"annotator": 5}',
    "long": b'{"annotator": "' + b"a" * 500 + b'"}',
    "script": b'{"annotator": "<script>alert(1)</script>"}',
    "formula": b'{"annotator": "=1+1"}',
    "control character": b'{"annotator": "a\\u0000b"}',
    "right to left": b'{"annotator": "a\\u202eb"}',
}
# Bodies that are no object at all, wherever they are sent.
SPOILT = (
    *("empty", "not json", "form", "cut", "two", "list", "text", "number", "null", "nested"),
    *("nested objects", "endless number", "endless number inside", "not utf-8", "utf-16", "pickle"),
    *("xml", "too large", "a list of people", "nobody"),
)
POSTED = ("/api/undo", "/api/join")
HEADERS: dict[str, dict[str, str]] = {
    "no own header": {"content-type": "application/json"},
    "no type": {"x-likewise": "1"},
    "a form": {"x-likewise": "1", "content-type": "application/x-www-form-urlencoded"},
    "a file": {"x-likewise": "1", "content-type": "multipart/form-data; boundary=x"},
    "plain text": {"x-likewise": "1", "content-type": "text/plain"},
    "other origin": {**JSON, "origin": "http://evil.example"},
    "no origin at all": {**JSON, "origin": "null"},
    "broken origin": {**JSON, "origin": "http://["},
    "cross-site": {**JSON, "sec-fetch-site": "cross-site"},
    "other host": {**JSON, "host": "evil.example"},
    "empty host": {**JSON, "host": ""},
    "host with a path": {**JSON, "host": "127.0.0.1/../x"},
}
PATHS = (
    *(
        "/items/",
        "/items/..%2f..%2fetc%2fpasswd",
        "/items/%00",
        "/items/" + "x" * 3000,
    ),
    *("/static/..%2fapp.py", "/static/none.js", "/none", "/api/none", "/api/", "//", "/.env"),
)


def requests() -> Iterator[Request]:
    """All of them."""
    for name, body in BODIES.items():
        yield Request(f"request/answer/{name}", body=body)
    for name, body in BODIES.items():
        if not body.startswith(b'{"annotator": "Ada", "ticket"'):  # which are about answers only
            yield Request(f"request/undo/as answer, {name}", path="/api/undo", body=body)
    for name in SPOILT:
        yield Request(f"request/join/as answer, {name}", path="/api/join", body=BODIES[name])
    for path in POSTED:
        for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH"):
            yield Request(f"request/{method} {path}", method=method, path=path, headers={})
        for name, headers in HEADERS.items():
            asked = b'{"annotator": "Ada"}'
            yield Request(f"request/headers {path}/{name}", path=path, headers=headers, body=asked)
    for name, body in UNDO.items():
        yield Request(f"request/undo/{name}", path="/api/undo", body=body)
    for name, body in JOIN.items():
        yield Request(f"request/join/{name}", path="/api/join", body=body)
    for name, headers in HEADERS.items():
        yield Request(f"request/headers/{name}", headers=headers, body=b"{}")
    for path in PATHS:
        yield Request(f"request/path/{path[:40]}", method="GET", path=path, headers={})
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"):
        yield Request(f"request/method/{method}", method=method)
