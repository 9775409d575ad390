"""Many people judging at once: is every answer kept, and how long does each wait?

Starts the labelling server as a process of its own, lets people answer as fast as it lets them
(each looks at both pictures first, as a browser would), and compares what was acknowledged with
what the database holds: with the server left alone, with a model that chooses the pairs
fitted beside it, and with the server killed (SIGKILL) again and again and started anew on the same
database.

    python benchmarks/label_load.py --out results/label_load.json --docs docs/label.md
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from likewise.label import read_judgements

ANSWERS = {"same": 1, "different": 0, "unsure": None}
SERVER = """
import sys
from likewise.label import serve
serve(sys.argv[1], sys.argv[2], port=int(sys.argv[3]), open_browser=False, show_names=True,
      classes=int(sys.argv[4]) or None, sort=int(sys.argv[5]) or None,
      announce=lambda url: print(url, flush=True))
"""
RETRY_S = 0.05
END = "<!-- /results -->"


class Server:
    """The labelling server in a process of its own, always on one port and one database."""

    def __init__(self, items: Path, database: Path, classes: int = 0, sort: int = 0) -> None:
        self.items, self.database, self.port = items, database, 0
        self.options = (classes, sort)
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        arguments = [str(a) for a in (self.items, self.database, self.port, *self.options)]
        command = [sys.executable, "-c", SERVER, *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1].strip("/\n"))

    def kill(self) -> None:
        """End it with SIGKILL: no handler runs, nothing is flushed."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


@dataclass
class Person:
    """One person's browser: a connection, a session, and what it saw and was promised."""

    name: str
    port: int
    cookie: str = ""
    asked: list[frozenset[str]] = field(default_factory=list)
    acknowledged: dict[frozenset[str], int | None] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    retries: int = 0
    seen: set[str] = field(default_factory=set)
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def judge(self, answers: int, think_s: float = 0) -> None:
        """Join and answer, looking at each picture once, as a browser with a cache does."""
        rng = random.Random(f"{self.name} {len(self.asked)}")
        state = await self.insist("POST", "/api/join", {"annotator": self.name})
        for _ in range(answers):
            await asyncio.sleep(think_s)
            pair = state["pair"]
            names = frozenset((pair["left"]["name"], pair["right"]["name"]))
            self.asked.append(names)
            for url in (pair["left"]["picture"], pair["right"]["picture"]):
                if url not in self.seen:
                    self.seen.add(url)
                    await self.insist("GET", url)
            answer = rng.choice(list(ANSWERS))
            body = {"annotator": self.name, "ticket": pair["ticket"], "answer": answer}
            state = await self.insist("POST", "/api/answer", body)
            self.acknowledged[names] = ANSWERS[answer]

    async def insist(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Ask until there is an answer, as the page does; only the first try is timed."""
        tries = 0
        while True:
            start = time.perf_counter()
            try:
                answer = await self.request(method, path, body)
            except (OSError, asyncio.IncompleteReadError, ValueError):
                self.streams, tries = None, tries + 1
                self.retries += 1
                await asyncio.sleep(RETRY_S)
                continue
            if path == "/api/answer" and tries == 0:
                self.waits.append(time.perf_counter() - start)
            return answer

    async def request(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        """One HTTP/1.1 request on a connection that stays open; its JSON, or None."""
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\nx-likewise: 1\r\n"
            f"cookie: {self.cookie}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(content)}\r\n\r\n"
        )
        writer.write(head.encode() + content)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        data = await reader.readexactly(int(fields["content-length"]))
        if lines[0].split()[1] != "200":
            raise RuntimeError(f"{method} {path}: {lines[0]} {data[:200]!r}")
        for line in lines:
            if line.lower().startswith("set-cookie: "):
                self.cookie = line.split(": ", 1)[1].partition(";")[0]
        return json.loads(data) if fields["content-type"] == "application/json" else None


def make_pictures(folder: Path, count: int) -> None:
    """Photograph-like pictures, 640 x 480 JPEG."""
    from PIL import Image

    rng = np.random.default_rng(0)
    folder.mkdir()
    for k in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8))
        coarse.resize((640, 480), Image.Resampling.BICUBIC).save(folder / f"{k:04d}.jpg")


async def crowd(server: Server, people: int, answers: int, kills: int) -> list[Person]:
    """Let everybody judge at once; kill the server so many times, evenly spread over the work."""
    persons = [Person(f"person {k:02d}", server.port) for k in range(people)]

    async def killer() -> None:
        for k in range(kills):
            due = people * answers * (k + 1) // (kills + 1)
            while sum(len(p.acknowledged) for p in persons) < due:
                await asyncio.sleep(0.005)
            server.kill()
            await asyncio.to_thread(server.start)

    await asyncio.gather(killer(), *(person.judge(answers) for person in persons))
    return persons


def verify(persons: list[Person], database: Path) -> dict[str, int]:
    """Compare what was acknowledged with what is stored: every figure but the first should be 0."""
    columns = read_judgements(database)
    rows = list(zip(*columns.values(), strict=True))
    stored = {(who, frozenset((left, right))): same for left, right, same, who in rows}
    promised = {(p.name, pair): same for p in persons for pair, same in p.acknowledged.items()}
    repeats = Counter((p.name, pair) for p in persons for pair in p.asked)
    missing = object()
    return {
        "acknowledged": len(promised),
        "lost": sum(key not in stored for key in promised),
        "changed": sum(stored.get(k, missing) not in (v, missing) for k, v in promised.items()),
        "stored_but_never_acknowledged": len(stored.keys() - promised.keys()),
        "stored_twice": len(rows) - len(stored),
        "asked_twice": sum(count - 1 for count in repeats.values()),
    }


def measure(
    folder: Path, people: int, answers: int, items: int, kills: int = 0, classes: int = 0
) -> dict[str, Any]:
    """One crowd on one fresh database; with classes, while a model of so many is being fitted."""
    database = folder / f"judgements-{kills}-{classes}.db"
    server = Server(folder / "items", database, classes)
    start = time.perf_counter()
    try:
        persons = asyncio.run(crowd(server, people, answers, kills))
    finally:
        seconds = time.perf_counter() - start
        server.stop()
    waits = 1000 * np.array([wait for person in persons for wait in person.waits])
    return {
        "kills": kills,
        "people": people,
        "answers_each": answers,
        "items": items,
        **verify(persons, database),
        "retries": sum(person.retries for person in persons),
        "seconds": round(seconds, 2),
        "answers_per_second": round(people * answers / seconds, 1),
        "wait_ms": {
            name: round(float(np.percentile(waits, q)), 2)
            for name, q in (("median", 50), ("p95", 95), ("p99", 99), ("max", 100))
        },
        "within_100_ms": round(float(np.mean(waits <= 100)), 5),
    }


def as_table(result: dict[str, Any]) -> str:
    """The figures for the documentation, in Markdown."""
    steady, *others = runs = [result[name] for name in ("steady", "fitting", "killed")]
    rows = [
        ("", "alone", "while a model is fitted", f"killed {others[-1]['kills']} times"),
        ("---", "---:", "---:", "---:"),
        ("answers acknowledged", *(f"{run['acknowledged']:,}" for run in runs)),
        ("of them lost or changed", *(str(run["lost"] + run["changed"]) for run in runs)),
        ("pairs asked twice of a person", *(str(run["asked_twice"]) for run in runs)),
        ("answers a second", *(f"{run['answers_per_second']:.0f}" for run in runs)),
        ("wait, median", *(f"{run['wait_ms']['median']:.0f} ms" for run in runs)),
        ("wait, 99%", *(f"{run['wait_ms']['p99']:.0f} ms" for run in runs)),
        ("acknowledged within 100 ms", *(f"{run['within_100_ms']:.2%}" for run in runs)),
    ]
    text = (
        f"{steady['people']} people at once, each answering {steady['answers_each']} pairs of "
        f"{steady['items']} photographs as fast as the page lets them, on one machine with "
        f"{result['cores']} cores that also plays the people:\n\n"
    )
    return text + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def write_docs(path: Path, name: str, table: str) -> None:
    """Put the table of some results between its markers."""
    begin = f"<!-- results:{name} -->\n"
    before, rest = path.read_text().split(begin)
    after = rest.split(END, 1)[1]
    path.write_text(f"{before}{begin}{table}{END}{after}")


def machine(load: float) -> dict[str, object]:
    """Where it was measured, and what else the machine was doing before."""
    return {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_average_before": round(load, 2),
    }


def keep(result: dict, name: str, table: str, out: Path | None, docs: Path | None) -> None:
    """Print a result, write it where asked for, and its table into a page of the docs."""
    text = json.dumps(result, indent=2)
    print(text)
    if out is not None:
        temporary = out.with_suffix(".tmp")
        temporary.write_text(text + "\n")
        temporary.replace(out)
    if docs is not None:
        write_docs(docs, name, table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--answers", type=int, default=200, help="answers of each person")
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    parser.add_argument("--docs", type=Path, help="a Markdown file with a place for the table")
    options = parser.parse_args()
    load = os.getloadavg()[0]  # what else the machine was doing
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_pictures(folder / "items", options.items)
        sizes = (options.people, options.answers, options.items)
        runs = {
            "steady": measure(folder, *sizes),
            "fitting": measure(folder, *sizes, classes=3),
            "killed": measure(folder, *sizes, kills=options.kills),
        }
    result = {
        **runs,
        **machine(load),
    }
    keep(result, "label_load", as_table(result), options.out, options.docs)


if __name__ == "__main__":
    main()
