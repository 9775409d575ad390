"""docs/scale.md: what cannot be run here is at least well-formed, and agrees with itself."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from docs_pages import DOCS, blocks_of

PAGE = (DOCS / "scale.md").read_text(encoding="utf-8")
BLOCKS = blocks_of(PAGE)


def test_the_shell_scripts_are_shell_scripts() -> None:
    scripts = [block.code for block in BLOCKS if block.language == "bash"]
    assert any("torchrun" in script and "SLURM_NNODES" in script for script in scripts)
    for script in scripts:
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_the_pods_of_the_job_find_each_other() -> None:
    yaml = pytest.importorskip("yaml")
    (text,) = [block.code for block in BLOCKS if block.language == "yaml"]
    service, job = yaml.safe_load_all(text)
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    (command,) = pod["containers"][0]["args"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    assert pod["subdomain"] == service["metadata"]["name"]
    first = f"--master-addr={job['metadata']['name']}-0.{service['metadata']['name']} "
    assert first in command
    assert spec["completions"] == spec["parallelism"]
    assert f"--nnodes={spec['completions']} " in command
    assert spec["completionMode"] == "Indexed"
    assert re.search(r"--resume$", command)


def test_throughput_is_that_of_the_results() -> None:
    text = (DOCS.parent / "results" / "throughput.json").read_text(encoding="utf-8")
    for row in json.loads(text):
        captured, compiled = row.get("captured") or row["captured_cudnn"], row["compiled"]
        cells = f"{captured:,.0f} | {compiled:,.0f} | {compiled / captured:.2f} |"
        assert f"{row['batch']:,} | {cells}" in PAGE
        assert f"{row['side_by_side']} runs beside each other" in PAGE
        assert not row["through_mps"]  # else the page must say so: that is slower


def test_convolutions_are_those_of_the_results() -> None:
    text = (DOCS.parent / "results" / "narrow_convolutions.json").read_text(encoding="utf-8")
    for row in json.loads(text)["rows"]:
        if row["batch"] == 128:
            cells = [
                f"{row[f'cudnn_{part}']:.1f}, {row[f'ours_{part}']:.1f}"
                for part in ("forward", "input", "weight")
            ]
            assert f"{row['side']} x {row['side']}" in PAGE
            assert " | ".join(cells) + " |" in PAGE


def test_ranks_are_those_of_the_results() -> None:
    text = (DOCS.parent / "results" / "ranks.json").read_text(encoding="utf-8")
    for row in json.loads(text)[-1]["rows"]:
        cells = [
            str(row["people"] or "not named"),
            str(row["ranks"]),
            f"{row['judgements_held']:,}",
        ]
        for kind in ("inference", "fit"):
            share = row.get(f"{kind}_memory_share")
            said = f"{row[f'{kind}_mb']:.0f} MB"
            cells.append(said if share is None else f"{said} ({share:.2f})")
        assert "| " + " | ".join(cells) + " |" in PAGE
        off = [value for name, value in row.items() if name.endswith("_off")]
        assert max(off, default=0) < 1e-5
