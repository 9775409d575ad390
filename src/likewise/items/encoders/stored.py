"""An encoder beside the model that was fitted to its features: a folder of JSON and data.

So that whoever has the model encodes new items as those of the fit were. Fitted encoders and ONNX
files are kept whole; a model of the hub by its name, revision and digest.
"""

from __future__ import annotations

from pathlib import Path

from likewise.errors import InputError
from likewise.io.atomic import write_json
from likewise.io.hub import PROGRAMS, locate
from likewise.io.json import JsonObject, read_json_object
from likewise.items.encoders import patches, programs, sentences, tfidf
from likewise.items.encoders.patches import PatchFeatures
from likewise.items.encoders.programs import ProgramEncoder
from likewise.items.encoders.protocol import Encoder
from likewise.items.encoders.sentences import SentenceEncoder
from likewise.items.encoders.tfidf import TfidfSvd

FOLDER, DESCRIPTION = "encoder", "encoder.json"
KIND, VERSION = "likewise-encoder", 1


def open_encoder(model: str, pixels: str | None = None, side: int | None = None) -> Encoder:
    """The encoder that a person names: an .onnx or .pt2 file, a folder, a name at the hub."""
    found = locate(model)
    if isinstance(found, Path) and found.suffix.lower() in PROGRAMS:
        return ProgramEncoder.open(found, pixels, side)
    if pixels is not None:
        raise InputError(f"{model} prepares pixels by itself; leave --pixels out.")
    return SentenceEncoder.open(model)


def describe(encoder: Encoder) -> JsonObject:
    """What a run says of its encoder: its name, its revision where it has one, its digest."""
    about: JsonObject = {"name": encoder.name, "digest": encoder.digest}
    if isinstance(encoder, SentenceEncoder):
        about["revision"] = encoder.revision
    if isinstance(encoder, ProgramEncoder):
        about |= {"pixels": encoder.pixels, "side": encoder.side}
    return about


def save_encoder(encoder: Encoder, folder: Path, text: str | None = None) -> None:
    """Write an encoder of ours into a new folder; ``text`` is the column that it read."""
    folder.mkdir()
    if isinstance(encoder, TfidfSvd):
        kind, own = tfidf.KIND, encoder.save(folder)
    elif isinstance(encoder, PatchFeatures):
        kind, own = patches.KIND, encoder.save(folder)
    elif isinstance(encoder, ProgramEncoder):
        kind, own = programs.KIND, encoder.save(folder)
    elif isinstance(encoder, SentenceEncoder):
        kind, own = sentences.KIND, encoder.record()
    else:
        raise InputError(f"the encoder {encoder.name} is your own; encode the items before.")
    about: JsonObject = {"kind": KIND, "version": VERSION, "encoder": kind, "text": text}
    write_json(folder / DESCRIPTION, {**about, **describe(encoder), "own": own})


def load_encoder(folder: Path, given: str | None = None) -> tuple[Encoder, str | None]:
    """``(encoder, column of the texts)`` as they were saved.

    ``given`` says where the encoder is, for a folder or a program that is not to be found, or not
    to be run, otherwise; it must be the same.
    """
    about = read_json_object(folder / DESCRIPTION)
    own, text = about.get("own"), about.get("text")
    if about.get("kind") != KIND or about.get("version") != VERSION or not isinstance(own, dict):
        raise InputError(f"{folder} holds no encoder that this Likewise knows; upgrade likewise.")
    encoder = _load(folder, about.get("encoder"), own) if given is None else _given(given, own)
    if encoder.digest != about.get("digest"):
        raise InputError(
            f"{encoder.name} is not the encoder that the model was fitted with (its digest is "
            "another); give that one."
        )
    return encoder, text if isinstance(text, str) else None


def _load(folder: Path, kind: object, own: JsonObject) -> Encoder:
    if kind == tfidf.KIND:
        return TfidfSvd.load(folder)
    if kind == patches.KIND:
        return PatchFeatures.load(folder)
    if kind == programs.KIND:
        return ProgramEncoder.load(folder, own)
    if kind == sentences.KIND:
        return SentenceEncoder.restore(own)
    raise InputError(f"{folder} holds an encoder of a kind {kind!r} that is not known here.")


def _given(model: str, own: JsonObject) -> Encoder:
    """What a person gives in its place, with the preparation that was saved."""
    pixels, side = own.get("pixels"), own.get("side")
    return open_encoder(
        model,
        pixels if isinstance(pixels, str) else None,
        side if isinstance(side, int) else None,
    )
