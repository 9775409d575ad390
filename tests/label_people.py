"""A person at the labelling page, without a browser: for the tests of the application."""

from __future__ import annotations

import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that httpx has a successor
    from starlette.testclient import TestClient

HEADERS = {"x-likewise": "1", "origin": "http://127.0.0.1:8000"}


class Visitor:
    """Speaks to the application as the page does, and remembers what it shows."""

    def __init__(self, app: Any, name: str | None = None, **query: str) -> None:
        # Errors come back as answers, as they would from the real server.
        self.client = TestClient(
            app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False
        )
        self.page = self.client.get("/", params=query)
        self.name, self.state = name, {}
        if name is not None:
            self.state = self.post("/api/join", annotator=name).json()

    def post(self, path: str, **body: Any) -> Any:
        return self.client.post(path, json=body, headers=HEADERS)

    def answer(self, answer: str = "same", **changes: Any) -> Any:
        body = {"annotator": self.name, "ticket": self.state["pair"]["ticket"], "answer": answer}
        response = self.post("/api/answer", **{**body, **changes})
        if response.status_code == 200:
            self.state = response.json()
        return response

    def undo(self, **changes: Any) -> Any:
        body = {"annotator": self.name, "judgement": self.state["undo"]}
        response = self.post("/api/undo", **{**body, **changes})
        if response.status_code == 200:
            self.state = response.json()
        return response

    def shown(self) -> tuple[str, str]:
        pair = self.state["pair"]
        return pair["left"]["name"], pair["right"]["name"]
