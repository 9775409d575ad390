"""Hours in minutes: people judge at a steady pace while others misbehave; what does it cost?

Beside people who judge, some clients send nonsense, some send a byte at a time, some open
connections and leave. At the end every acknowledged answer must be stored, and the server must
hold no more files than at the start and little more memory.

    python benchmarks/label_soak.py --minutes 5 --out results/label_soak.json
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import platform
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from label_load import Person, Server, make_pictures, verify

THINK_S = 0.1
NONSENSE = (
    b"GET /items/../../etc/passwd HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    b"GET /api/state HTTP/1.1\r\nhost: evil.example\r\n\r\n",
    b"POST /api/answer HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 99999999\r\n\r\n",
    b"POST /api/join HTTP/1.1\r\nhost: 127.0.0.1\r\norigin: http://evil.example\r\n"
    b"x-likewise: 1\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ",
    b"",
)


async def judge(person: Person, until: float) -> None:
    """Answer at a person's pace until the time is over."""
    while time.monotonic() < until:
        await person.judge(20, THINK_S)


async def misbehave(port: int, until: float, rng: random.Random, counts: dict[str, int]) -> None:
    """Connect, send nonsense (perhaps slowly), perhaps read the refusal, leave."""
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            data = rng.choice(NONSENSE)
            for k in range(0, len(data), step := rng.choice([1, 7, 1000])):
                writer.write(data[k : k + step])
                await asyncio.sleep(0.02 if step < 1000 else 0)
            if rng.random() < 0.7:
                with contextlib.suppress(TimeoutError):
                    answer = await asyncio.wait_for(reader.read(100), 1)
                    status = answer[9:12].decode("ascii", "replace") or "closed"
                    counts[status] = counts.get(status, 0) + 1
            writer.close()
        await asyncio.sleep(0.05)


def footprint(server: Server) -> dict[str, float]:
    """Resident memory and open files of the server."""
    process = psutil.Process(server.process.pid)
    return {"mib": round(process.memory_info().rss / 2**20, 1), "files": process.num_fds()}


async def soak(server: Server, people: int, minutes: float) -> dict[str, Any]:
    persons = [Person(f"person {k:02d}", server.port) for k in range(people)]
    counts: dict[str, int] = {}
    until = time.monotonic() + 60 * minutes
    work = asyncio.gather(
        *(judge(person, until) for person in persons),
        *(misbehave(server.port, until, random.Random(k), counts) for k in range(people)),
    )
    await asyncio.sleep(6 * minutes)
    early = footprint(server)  # after a tenth of the time: caches are warm
    await work
    for person in persons:
        if person.streams is not None:
            person.streams[1].close()
    await asyncio.sleep(25)  # past the deadline of every request
    waits = sorted(1000 * wait for person in persons for wait in person.waits)
    return {
        "people": people,
        "minutes": minutes,
        **verify(persons, server.database),
        "wait_ms_p99": round(waits[int(0.99 * len(waits))], 2),
        "refusals": dict(sorted(counts.items())),
        "early": early,
        "late": footprint(server),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    options = parser.parse_args()
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # our rude clients' broken pipes
    with tempfile.TemporaryDirectory() as name:
        make_pictures(Path(name, "items"), 400)
        server = Server(Path(name, "items"), Path(name, "judgements.db"))
        try:
            result = asyncio.run(soak(server, options.people, options.minutes))
        finally:
            server.stop()
    text = json.dumps({**result, "python": platform.python_version()}, indent=2)
    print(text)
    if options.out is not None:
        temporary = options.out.with_suffix(".tmp")
        temporary.write_text(text + "\n")
        temporary.replace(options.out)


if __name__ == "__main__":
    main()
