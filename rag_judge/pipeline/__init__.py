"""One readable function per command, calling the modules above in order. Clock, seed and environment enter here.

The functions take and return records, so that Python callers have what the command line has. `run` and `collect`
start an event loop of their own; inside a running one (a notebook), await `run_async` and `collect_async`.
"""

from rag_judge.pipeline.collect import collect, collect_async
from rag_judge.pipeline.demo import DemoOptions, demo
from rag_judge.pipeline.pairwise import PairwiseRequest, pairwise, pairwise_async, resume_pairwise
from rag_judge.pipeline.plan import PlannedSpend, plan
from rag_judge.pipeline.project import init
from rag_judge.pipeline.regrade import Regraded, regrade
from rag_judge.pipeline.run import RunRequest, real_world, resumed_request, retrying, run, run_async
from rag_judge.pipeline.steps import Budget, RunResult, World

__all__ = [
    "Budget",
    "DemoOptions",
    "PairwiseRequest",
    "PlannedSpend",
    "Regraded",
    "RunRequest",
    "RunResult",
    "World",
    "collect",
    "collect_async",
    "demo",
    "init",
    "pairwise",
    "pairwise_async",
    "plan",
    "real_world",
    "regrade",
    "resume_pairwise",
    "resumed_request",
    "retrying",
    "run",
    "run_async",
]
