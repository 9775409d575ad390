"""The methods: what each is called, what people are told of it, its program, what it honours.

The estimator's checks, the command line's help, the experiments, the demo and the report read
this table. A new method is its program, in a file beside this one, and an entry here
(docs/extending.md). Nothing heavy is imported until a method is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from likewise.errors import InputError

if TYPE_CHECKING:
    from likewise.methods.options import FitOptions
    from likewise.methods.problem import Problem
    from likewise.methods.result import MethodProgram

    Program = Callable[[Problem, FitOptions], MethodProgram]

# Recipe fields that only some methods use; all others are common to all.
JOINT_FIELDS = frozenset(
    {"teachers", "mean_teacher_from", "mean_teacher_temperature", "high_noise"}
)
PAIRWISE_FIELDS = frozenset({"balance", "starts", "start_share", "split_merged_at"})


@dataclass(frozen=True)
class Method:
    """One way to learn a classifier from judgements."""

    name: str
    """What ``method=`` and ``--method`` call it."""
    title: str
    """What tables and figures call it."""
    words: str
    """What it maximises or contrasts, for people: completes "learned by ..."."""
    program: str
    """``module:function`` of its program: (problem, options) to a generator of training runs."""
    honours: frozenset[str] = frozenset()
    """The options of `FitOptions` that it uses; it refuses the others."""
    recipe_fields: frozenset[str] = PAIRWISE_FIELDS
    """The recipe fields that it uses, of those that not all methods do."""
    note: str = ""
    """An aside for tables of several methods."""

    def start(self, problem: Problem, options: FitOptions) -> MethodProgram:
        """Its program, which does nothing until it is run."""
        module, _, function = self.program.partition(":")
        program: Program = getattr(import_module(module), function)
        return program(problem, options)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "auto",
            title="automatic",
            words="the joint likelihood of all judgements",
            program="likewise.methods.joint:joint_method",
            honours=frozenset({"transition", "noise", "known"}),
            recipe_fields=JOINT_FIELDS,
        ),
        Method(
            "joint",
            title="joint",
            words="the joint likelihood of all judgements",
            program="likewise.methods.joint:joint_method",
            honours=frozenset({"transition", "noise", "known"}),
            recipe_fields=JOINT_FIELDS,
            note="what auto takes",
        ),
        Method(
            "mns",
            title="MNS",
            words="the noisy-similarity likelihood (MNS)",
            program="likewise.methods.pairwise:mns_method",
            honours=frozenset({"transition", "anchors"}),
        ),
        Method(
            "mcl",
            title="MCL",
            words="the pairwise likelihood (MCL)",
            program="likewise.methods.pairwise:mcl_method",
            note="no noise model",
        ),
        Method(
            "kcl",
            title="KCL",
            words="the pairwise contrast (KCL)",
            program="likewise.methods.pairwise:kcl_method",
            note="no noise model",
        ),
        # A new method goes here.
    )
}


def method_called(name: str) -> Method:
    """The method of that name, or an `InputError` that lists all."""
    if name not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, not {name!r}.")
    return METHODS[name]


def methods_that_honour(option: str) -> list[str]:
    """The names of the methods that use an option, or a recipe field that not all use."""
    return [m.name for m in METHODS.values() if option in m.honours | m.recipe_fields]
