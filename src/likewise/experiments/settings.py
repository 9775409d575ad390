"""The settings of an experiment: one TOML file a table, read into a checked dataclass.

A file says what is run on what, and in ``[training]`` (KCL, MCL, MNS) and ``[joint]`` how: fields
of `likewise.training.recipe.Recipe`, on top of the network's own recipe. ``[own.METHOD]`` changes
them for one method.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise.errors import InputError
from likewise.io.json import Record
from likewise.methods import registry
from likewise.training.recipe import Recipe, default_recipe

# In the order of the paper's tables; MNS comes with T estimated and with the true T.
_PAPER = ("kcl", "mcl", "mns", "joint")
_ORDER = (*_PAPER, *(name for name in registry.METHODS if name not in (*_PAPER, "auto")))
METHOD_TITLES: dict[str, str] = {}
for _name in _ORDER:
    _title = registry.METHODS[_name].title
    if _name == "mns":
        METHOD_TITLES |= {"mns_estimated": f"{_title}(T̂)", "mns_true": f"{_title}(T)"}
    else:
        METHOD_TITLES[_name] = _title
METHODS = tuple(METHOD_TITLES)
TABLES = (
    "table1",
    "table2",
    "table3",
    "table4",
    "table5",
    "cifar10n",
    "table2_pretrained",
    "pairflip",
    "larger",
    "larger100",
    "larger_cifar10n",
    "larger_pairflip",
    "like_for_like",
    "like_for_like100",
    "paper1",
    "paper2",
    "paper3",
)
_CONFIGS = Path(__file__).parent / "configs"


@dataclass(frozen=True)
class TableSettings:
    """One table: what is run, on what, how often, and how."""

    table: str  # its name
    title: str  # as printed above it
    dataset: str  # by name
    network: str  # by name
    noise_kind: tuple[str, ...]  # symmetric, pair_flip, or the names of real label sources
    noise: tuple[float, ...] = ()  # rates for synthetic noise; empty for real noise
    methods: tuple[str, ...] = METHODS  # names of METHODS
    trials: int = 5  # repetitions of each cell
    first_trial: int = 0  # the first of them that is run: `cut` to one trial sets it
    held_out: float = 0.1  # share of items that choose the epoch
    estimator: str | float = "counts"  # of T in MNS(T̂): counts, argmax (the paper's) or a quantile
    # As the paper writes them: MNS(T) from a start of its own, stage 2 from stage 1 as it is.
    as_published: bool = False
    items: int | None = None  # use only so many training items (for smoke runs)
    pretrained: str = "none"  # none | self (without labels) | imagenet | a state dict's path
    image_size: int | None = None  # for sets that are streamed from disk
    workers: int = 4  # processes that decode them
    training: Recipe = field(default_factory=Recipe)  # kcl, mcl, mns
    joint: Recipe = field(default_factory=Recipe)  # recipe of the joint method
    # Changes for one method alone, as {"mns_true": {"epochs": 12}}: it goes on from MCL.
    own: dict[str, Record] = field(default_factory=dict)
    contrast: Record = field(default_factory=dict)  # of pretrained = "self"
    quick: Record = field(default_factory=dict)  # overrides for --quick

    def __post_init__(self) -> None:
        if not isinstance(self.table, str) or not re.fullmatch(r"[\w-]{1,80}", self.table):
            raise InputError(f"a table's name is letters and digits, not {self.table!r}.")
        _check_methods(self.methods)
        known = isinstance(self.estimator, float) or self.estimator in ("counts", "argmax")
        _check(known, "estimator", self.estimator, "counts, argmax or a quantile")
        _check(self.trials >= 1, "trials", self.trials, "at least 1")
        _check(0 < self.held_out < 1, "held_out", self.held_out, "between 0 and 1")
        _check_methods(tuple(self.own))
        for rate in self.noise:
            _check(0 <= rate < 1, "noise", rate, "between 0 and 1")
        if self.is_synthetic != bool(self.noise):
            raise InputError(f"{self.table}: synthetic noise needs rates, and real noise has none.")

    @property
    def is_synthetic(self) -> bool:
        return self.noise_kind in (("symmetric",), ("pair_flip",))

    @property
    def network_title(self) -> str:
        """The network, and how it was started if not from random weights."""
        return f"{self.network}+self" if self.pretrained == "self" else self.network

    def recipe(self, method: str) -> Recipe:
        shared = self.joint if method == "joint" else self.training
        return shared.with_(**self.own.get(method, {}))

    def cut(
        self,
        *,
        trials: int | None = None,
        trial: int | None = None,
        noise: tuple[float | str, ...] | None = None,
        methods: tuple[str, ...] | None = None,
        epochs: int | None = None,
        quick: bool = False,
    ) -> TableSettings:
        """A smaller table: ``quick`` first, then whatever is named; ``trial`` is one alone."""
        chosen = self
        if quick:
            trials, epochs = trials or self.quick.get("trials"), epochs or self.quick.get("epochs")
            noise = noise or tuple(self.quick.get("noise", ())) or None
            chosen = dataclasses.replace(
                chosen,
                items=self.quick.get("items"),
                contrast=self.contrast and {**self.contrast, "epochs": 1},
            )
        if noise is not None:
            chosen = chosen._with_noise(noise)
        if methods is not None:
            chosen = dataclasses.replace(chosen, methods=_check_methods(methods))
        if trials is not None:
            chosen = dataclasses.replace(chosen, trials=trials)
        if trial is not None:
            chosen = dataclasses.replace(chosen, first_trial=trial, trials=trial + 1)
        if epochs is not None:
            shorter, joint = (r.with_(epochs=epochs) for r in (chosen.training, chosen.joint))
            own = {m: {k: v for k, v in c.items() if k != "epochs"} for m, c in self.own.items()}
            chosen = dataclasses.replace(chosen, training=shorter, joint=joint, own=own)
        return chosen

    def _with_noise(self, noise: tuple[float | str, ...]) -> TableSettings:
        if self.is_synthetic:
            try:
                rates = tuple(float(level) for level in noise)
            except ValueError:
                raise InputError(f"{self.table} takes noise rates, not {noise}.") from None
            return dataclasses.replace(self, noise=rates)
        unknown = [level for level in noise if level not in self.noise_kind]
        if unknown:
            known = ", ".join(self.noise_kind)
            raise InputError(f"{self.table} has no noise {unknown[0]!r}; choose from {known}.")
        return dataclasses.replace(self, noise_kind=tuple(str(level) for level in noise))


def load_settings(table: str | Path) -> TableSettings:
    """The settings of a table by name, or from a TOML file of one's own."""
    path = _CONFIGS / f"{table}.toml" if str(table) in TABLES else Path(table)
    if path.suffix != ".toml":
        raise InputError(f"there is no table {str(table)!r}; choose from {', '.join(TABLES)}.")
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML: {error}.") from error
    network = str(raw.get("network", ""))
    for section, joint in (("training", False), ("joint", True)):
        try:
            raw[section] = default_recipe(network, joint).with_(**raw.get(section, {}))
        except TypeError as error:  # a list where a number belongs
            raise InputError(f"{path}, [{section}]: {error}.") from error
    return _build(raw, path)


def _build(values: Record, path: Path) -> TableSettings:
    known = {f.name for f in dataclasses.fields(TableSettings)}
    if unknown := sorted(set(values) - known):
        raise InputError(f"{path}: unknown setting {unknown[0]!r}; known are {sorted(known)}.")
    frozen: Record = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
    try:
        return TableSettings(**frozen)
    except TypeError as error:
        raise InputError(f"{path}: {error}.") from error


def _check(holds: bool, name: str, value: Any, expected: str) -> None:
    if not holds:
        raise InputError(f"{name} must be {expected}, but is {value!r}.")


def _check_methods(methods: tuple[str, ...]) -> tuple[str, ...]:
    unknown = [m for m in methods if m not in METHODS]
    if unknown:
        raise InputError(f"there is no method {unknown[0]!r}; choose from {', '.join(METHODS)}.")
    return methods
