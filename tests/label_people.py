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


class Sorter(Visitor):
    """A person at the sorting page."""

    def keys(self) -> list[str]:
        """The keys of the items on the screen."""
        return [item["key"] for item in self.items]

    def post(self, path: str, **body: Any) -> Any:
        response = super().post(path, **body)
        self.note(response)
        return response

    def note(self, response: Any) -> None:
        """Remember what came back; the items of a screen come once."""
        if response.status_code == 200 and response.json().get("annotator"):
            self.state = response.json()
            if self.state["sort"] is not None and "items" in self.state["sort"]:
                self.items = self.state["sort"]["items"]

    def act(self, what: str, **body: Any) -> Any:
        sort = self.state["sort"]
        own = {"annotator": self.name, "ticket": sort["ticket"], "after": sort["after"]}
        return self.post(f"/api/{what}", **{**own, **body})

    def move(self, items: list[str], pile: int | None, **changes: Any) -> Any:
        return self.act("move", items=items, pile=pile, **changes)

    def finish(self, **changes: Any) -> Any:
        return self.act("finish", **changes)

    def undo(self, **changes: Any) -> Any:
        return self.post("/api/undo", annotator=self.name, undo=self.state["undo"], **changes)

    def sort_all(self, kind: Any) -> None:
        """Put every item into the pile of its kind, by name, and finish."""
        for item in self.items:
            assert self.move([item["key"]], kind(item["name"])).status_code == 200
        assert self.finish().status_code == 200
