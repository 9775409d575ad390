"""The joint likelihood of all judgements: EM on the judgement graph."""

from likewise.joint.em import Options
from likewise.joint.fit import JointResult, fit_joint

__all__ = ["JointResult", "Options", "fit_joint"]
