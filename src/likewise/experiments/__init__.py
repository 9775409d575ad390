"""The paper's tables and figures: settings -> cells -> runs (JSON) -> tables, plots."""

from __future__ import annotations

from likewise.experiments.cells import Cell, plan
from likewise.experiments.reproduce import TARGETS, list_commands, reproduce, write_outputs
from likewise.experiments.settings import METHODS, TABLES, TableSettings, load_settings
from likewise.experiments.store import read_collected, write_collected
from likewise.experiments.summary import Summary, summarise
from likewise.experiments.tables import render

__all__ = [
    "METHODS",
    "TABLES",
    "TARGETS",
    "Cell",
    "Summary",
    "TableSettings",
    "list_commands",
    "load_settings",
    "plan",
    "read_collected",
    "render",
    "reproduce",
    "summarise",
    "write_collected",
    "write_outputs",
]
