"""The channels: what each is called, what people are told of it, and where it is made.

``noise=`` of the estimator, ``--noise`` of the command line, saved models and the report read this
table. A new channel is its class, in a file beside this one, and an entry here (docs/extending.md).
Nothing heavy is imported until a channel is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from likewise.errors import InputError

if TYPE_CHECKING:
    from likewise.noise.channels import Channel, ChannelClass


@dataclass(frozen=True)
class ChannelEntry:
    """One kind of channel: how answers come from two perceived classes (noisy labels)."""

    kind: str
    """What its ``to_dict()`` calls it."""
    noise: tuple[str, ...]
    """What ``noise=`` calls it; the noise model is the channel with or without class flips."""
    title: str
    """What tables call it."""
    words: str
    """A sentence for people, into which the fields of its ``to_dict()`` are put."""
    channel: str
    """``module:Class`` of the channel."""

    def load(self) -> ChannelClass:
        """The class."""
        module, _, name = self.channel.partition(":")
        found: ChannelClass = getattr(import_module(module), name)
        return found

    def describe(self, data: Mapping[str, object]) -> str:
        """The sentence about a channel that ``to_dict()`` described."""
        try:
            return self.words.format(**data)
        except (KeyError, ValueError, TypeError, IndexError, AttributeError):
            return ""  # a file that was changed by hand; the page goes on without


CHANNELS: dict[str, ChannelEntry] = {
    entry.kind: entry
    for entry in (
        ChannelEntry(
            "exact",
            noise=("class",),
            title="no slips",
            words="An answer follows from the two perceived classes without slips.",
            channel="likewise.noise.channels:ExactChannel",
        ),
        ChannelEntry(
            "rate",
            noise=("judgement", "both"),
            title="two rates",
            words="Two items perceived as one class are called same {a:.0%} of the time, two "
            "perceived as different classes {b:.0%} of the time.",
            channel="likewise.noise.channels:RateChannel",
        ),
        ChannelEntry(
            "annotator",
            noise=("annotator",),
            title="people who differ",
            words="Each person has rates of their own, listed below.",
            channel="likewise.noise.annotators:AnnotatorChannel",
        ),
        ChannelEntry(
            "confusion",
            noise=("confusion",),
            title="classes that are confused",
            words="How often two items are called same depends on both perceived classes.",
            channel="likewise.noise.channels:ConfusionChannel",
        ),
        # A new channel goes here.
    )
}


def noise_names() -> tuple[str, ...]:
    """All that ``noise=`` may be."""
    return ("auto", *(name for entry in CHANNELS.values() for name in entry.noise))


def channel_for(noise: str) -> ChannelEntry:
    """The channel of a noise model, or an `InputError` that lists all noise models."""
    for entry in CHANNELS.values():
        if noise in entry.noise:
            return entry
    raise InputError(f"noise must be one of {', '.join(noise_names())}, not {noise!r}.")


def channel_from_dict(data: Mapping[str, object]) -> Channel:
    """The channel that ``to_dict()`` described."""
    kind = data.get("kind")
    entry = CHANNELS.get(kind) if isinstance(kind, str) else None
    if entry is None:
        raise InputError(f"unknown channel kind {kind!r}; known are {', '.join(CHANNELS)}.")
    fields = {name: value for name, value in data.items() if name != "kind"}
    try:
        return entry.load().from_dict(fields)
    except (TypeError, ValueError, KeyError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the fields of this {kind} channel do not fit it: {error}.") from error
