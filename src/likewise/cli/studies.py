"""The whole job: demo, reproduce, bench."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.cli.app import Device, Json, Seed, example
from likewise.cli.output import emit, emit_lines, facts, say, table
from likewise.errors import InputError

if TYPE_CHECKING:
    from likewise.io.json import Record

Target = Annotated[
    str,
    typer.Argument(help="table1 ... table5, figures, all, or a settings file.", show_default=False),
]
Methods = Annotated[
    list[str] | None, typer.Option("--methods", "--method", help="As kcl,mcl; may be repeated.")
]
OnlyList = Annotated[
    bool, typer.Option("--list", help="Run nothing: print a command for each cell.")
]
ClusterKind = Annotated[
    str | None, typer.Option(help="slurm or local: cells as jobs (needs likewise\\[cluster]).")
]
ClusterOption = Annotated[
    list[str] | None,
    typer.Option(help="As slurm_partition=gpu or timeout_min=600; may be repeated."),
]


def register(app: typer.Typer) -> None:
    app.command(epilog=example("likewise demo", "likewise demo --noise 0.6"))(demo)
    app.command(epilog=example("likewise reproduce table1 --data data --out results/paper"))(
        reproduce
    )
    app.command(epilog=example("likewise bench --gpu"))(bench)


def demo(
    out: Annotated[
        Path | None, typer.Option(help="A new folder for the run; by default under runs/.")
    ] = None,
    noise: Annotated[float, typer.Option(help="Share of items taken for another class.")] = 0.4,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Learn handwritten digits from noisy same-or-different judgements, by every method."""
    import torch

    from likewise.experiments.demo import run_demo

    torch.set_num_threads(1)  # products this small take longer on two cores than on one
    outcome = run_demo(out, noise=noise, seed=seed, report=say)
    columns = ["method", "accuracy %", "error of T", "error of TT'", "seconds"]
    rows = [
        (
            row["title"],
            f"{100 * row['accuracy']:.1f}",
            _three(row["transition_error"]),
            _three(row["gram_error"]),
            f"{row['seconds']:.1f}",
        )
        for row in outcome["methods"]
    ]
    title = (
        f"{outcome['test_items']} held-out digits, learned from all pairs of {outcome['items']}, "
        f"{noise:.0%} of which were taken for another digit"
    )
    where = facts(
        None, [("run", outcome["run"]), ("next", f"{program_name()} report {outcome['run']}")]
    )
    emit(json, outcome, table(title, columns, rows), where)


def program_name() -> str:
    """How this program is called from here: `make demo` calls one that is not on the path."""
    called = Path(sys.argv[0])
    on_path = shutil.which("likewise") is not None or called.stem != "likewise"
    return "likewise" if on_path else shlex.quote(str(called))


def reproduce(
    target: Target,
    data: Annotated[
        Path | None, typer.Option(help="Where the data sets are; default: LIKEWISE_DATA.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Finished cells here are not run again.")] = Path(
        "runs/paper"
    ),
    trials: Annotated[int | None, typer.Option(min=1)] = None,
    trial: Annotated[int | None, typer.Option(min=0, help="This one alone.")] = None,
    noise: Annotated[list[str] | None, typer.Option(help="As 0.2,0.6; may be repeated.")] = None,
    methods: Methods = None,
    epochs: Annotated[int | None, typer.Option(min=1)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A smoke run of minutes.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Cells at a time.")] = 1,
    only_list: OnlyList = False,
    cluster: ClusterKind = None,
    cluster_option: ClusterOption = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Run the paper's tables and figures; a killed run goes on where it stopped."""
    from likewise.experiments import list_commands, render, reproduce
    from likewise.experiments.cluster import CellCommand, Cluster, parse_options

    rates = None if noise is None else _rates(noise)
    if only_list:
        command = CellCommand(target, data, out, epochs, quick, device)
        found = list_commands(
            target, command, trials=trials, trial=trial, noise=rates, methods=methods
        )
        emit_lines(json, "commands", [shlex.join(["likewise", *words]) for words in found])
        return
    if cluster_option and cluster is None:
        raise InputError("--cluster-option says something to a cluster; name it with --cluster.")
    summaries = reproduce(
        target,
        data,
        out,
        trials=trials,
        trial=trial,
        noise=rates,
        methods=methods,
        epochs=epochs,
        quick=quick,
        jobs=jobs,
        device=device,
        cluster=Cluster(cluster, jobs, parse_options(cluster_option or [])) if cluster else None,
        report=lambda result: say(_cell_line(result)),
        tell=say,
    )
    emit(json, {"out": out, "summaries": [asdict(s) for s in summaries]}, render(summaries, "text"))


def bench(
    gpu: Annotated[bool, typer.Option("--gpu", help="Training speed on a GPU.")] = False,
    seconds: Annotated[float, typer.Option(help="How long each is measured.")] = 2.0,
    out: Annotated[
        Path | None, typer.Option(help="A JSON file to append the run to.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Measure speed as ratios within one run; `make bench` runs the other benchmarks."""
    import torch

    from likewise.experiments.bench import append_run, bench_gpu

    if not gpu:
        raise InputError("say what to measure: --gpu (the CPU benchmarks are run by make bench).")
    if not torch.cuda.is_available():
        raise InputError("--gpu needs a CUDA device, and this machine has none.")
    rows = bench_gpu(seconds)
    if out is not None:
        append_run(out, rows)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    emit(
        json, {"rows": rows}, table(None, columns, [[row.get(c) for c in columns] for row in rows])
    )


def _rates(texts: list[str]) -> list[float | str]:
    """Noise as numbers where it is one; the real data sets name theirs."""
    return [float(text) if text.replace(".", "", 1).isdecimal() else text for text in texts]


def _three(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _cell_line(result: Record) -> str:
    noise = result["noise_kind"] if result["noise"] is None else result["noise"]
    return (
        f"{result['table']}, noise {noise}, {result['method']}, trial {result['trial']}: "
        f"{result['accuracy']:.2%}"
    )
