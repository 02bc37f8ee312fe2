"""Every error DataForge raises on purpose, in one tree.

A message says what was asked, what was found and what to do about it; the command line prints it
as it stands and exits with the class's `exit_code`. A bug is never one of these.
"""

from __future__ import annotations

from typing import Literal

__all__ = [
    "CallOutcome",
    "ContextOverflow",
    "ContradictoryCondition",
    "DataForgeError",
    "DeclarationError",
    "DuplicateName",
    "FatalModelError",
    "GraphError",
    "InputError",
    "LibraryError",
    "ModelError",
    "NodeOnNoWalk",
    "PackingError",
    "RateLimited",
    "RequestRefused",
    "RunError",
    "RunLocked",
    "RunMismatch",
    "SharedWeights",
    "TooManyStates",
    "TrainingError",
    "TransientModelError",
    "UnknownModel",
    "Unmet",
    "UnreachableTarget",
    "UsageError",
]


CallOutcome = Literal[
    "ok",
    "truncated",
    "refused",
    "unparsable",
    "off-schema",
    "judge-rejected",
    "rate-limited",
    "transient",
    "fatal",
]
"""What came of asking a model once; `run.outcome` says what follows from each."""


class DataForgeError(Exception):
    """Anything the user can put right; the message says how."""

    exit_code = 1


class UsageError(DataForgeError):
    """A command line or a setting that cannot mean anything."""

    exit_code = 2


class DeclarationError(DataForgeError):
    """A struct, node or content file declares what the plan cannot read."""

    exit_code = 2


class LibraryError(DataForgeError):
    """Content that is missing, doubled or does not load; names the file."""

    exit_code = 2


class InputError(DataForgeError):
    """Seeds or samples that cannot be read; names the file and, where there is one, the line."""

    exit_code = 2


class GraphError(DataForgeError):
    """A graph that cannot be built."""

    exit_code = 2


class UnreachableTarget(GraphError):
    """No walk leads from the source to the target."""


class NodeOnNoWalk(GraphError):
    """A node named outright lies on no walk."""


class ContradictoryCondition(GraphError):
    """A condition that no value can meet."""


class DuplicateName(GraphError):
    """Two nodes of one graph bear the same name."""


class TooManyStates(GraphError):
    """The state graph outgrew its limit; part of the graph wants nesting."""

    def __init__(self, message: str, causes: str = "") -> None:
        super().__init__(message)
        self.causes = causes
        """What multiplies the states, in words."""


class ModelError(DataForgeError):
    """A model could not be opened or did not reply."""

    outcome: CallOutcome = "fatal"


class UnknownModel(ModelError):
    """A model name that no transport answers to."""

    exit_code = 2


class SharedWeights(ModelError):
    """A judge would judge the output of its own weights."""

    exit_code = 2


class ContextOverflow(ModelError):
    """The prompt and the reply asked for do not fit in the model's context."""

    outcome = "refused"


class RequestRefused(ModelError):
    """A model refuses this one request, by a content filter say; others it may take."""

    outcome = "refused"


class RateLimited(ModelError):
    """The endpoint asked to slow down."""

    outcome = "rate-limited"

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds the endpoint asked to wait; None when it did not say."""


class TransientModelError(ModelError):
    """A failure that may pass: a timeout, a dropped connection, a 5xx."""

    outcome = "transient"


class FatalModelError(ModelError):
    """A failure that no retry mends: a bad key, no credit, an unknown model."""


class Unmet(DataForgeError):
    """A node could not keep its promise this time.

    The run tries the node again up to its `attempts`; after that the walk is rejected, with
    `reason` counted in the report. Never a crash.
    """

    def __init__(self, reason: str, detail: str = "", outcome: CallOutcome = "off-schema") -> None:
        # Raised by users' nodes, which may hand over anything.
        reason, detail = str(reason), str(detail)
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        """A short, countable phrase, the same for every walk that fails this way."""
        self.detail = detail
        """What was found this time."""
        self.outcome: CallOutcome = outcome
        """What it was of a reply that made this so."""


class RunError(DataForgeError):
    """A run directory that cannot be used as asked."""


class RunLocked(RunError):
    """Another process is writing this run directory."""


class RunMismatch(RunError):
    """The run directory was begun with another graph, model or seed."""

    exit_code = 2


class PackingError(DataForgeError):
    """Samples that cannot be packed."""


class TrainingError(DataForgeError):
    """A training run that cannot start or went wrong."""
