"""`likewise embed`: photographs or texts in, a file of features out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from likewise.cli.app import IdColumn, ImageSize, Json, Pixels, TextColumn, example
from likewise.cli.output import emit, facts

if TYPE_CHECKING:
    from likewise.items.encoders.reading import Reading


def register(app: typer.Typer) -> None:
    app.command(epilog=example("likewise embed photos/ --model clip-ViT-B-32 --out items.npz"))(
        embed
    )


def embed(
    items: Annotated[
        Path,
        typer.Argument(
            metavar="ITEMS",
            help="A folder of images or .txt files, or a table with --text COLUMN.",
            show_default=False,
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            help="A name at the hub, an .onnx or .pt2 file, a folder.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option(help="The features: .npz.", show_default=False)],
    text: TextColumn = None,
    pixels: Pixels = None,
    id_column: IdColumn = None,
    image_size: ImageSize = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    json: Json = False,
) -> None:
    """Turn photographs or texts into features with a pretrained model, once for many fits.

    What was encoded before is read from a cache; a command that was killed goes on where it was.
    """
    from likewise.errors import InputError
    from likewise.io.hub import locate
    from likewise.io.progress import stage
    from likewise.training.progress import progress_shown

    if out.suffix.lower() != ".npz":
        raise InputError(f"features go to an .npz file; name the output {out.stem}.npz.")
    locate(model)  # before anything heavy is imported
    with progress_shown(not quiet, lines=True):
        with stage(None, 0.05):
            from likewise.items.encoders.reading import Encoding, read_to_fit
        asked = Encoding(model, text, pixels)
        found = read_to_fit(items, asked, id_column=id_column, image_size=image_size)
        _write(out, found)
    assert found.encoder is not None
    result = {
        "out": str(out),
        "items": len(found.data),
        "features": found.data.items.shape[1],
        "model": found.encoder.name,
        "digest": found.encoder.digest,
    }
    rows = [
        ("features", f"{len(found.data):,} items of {found.data.items.shape[1]:,}, in {out}"),
        ("model", found.encoder.name),
        ("next", f"likewise fit {out} PAIRS --out RUN"),
    ]
    emit(json, result, facts(None, rows))


def _write(out: Path, found: Reading) -> None:
    """The features, what items are called, and what made them."""
    import numpy as np

    from likewise.io.atomic import replacing

    arrays = {"items": found.data.items}
    if found.data.ids is not None:
        arrays["ids"] = found.data.ids
    with replacing(out) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
