"""The joint likelihood of all judgements: EM on the judgement graph."""

from likewise.inference.em import Options
from likewise.inference.fit import JointResult, fit_joint

__all__ = ["JointResult", "Options", "fit_joint"]
