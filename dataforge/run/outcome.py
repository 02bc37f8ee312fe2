"""What the run does about each outcome of asking a model: one table, read wherever one occurs.

    outcome         what came of it                                      what follows
    ok              a reply that keeps the node's promise                the walk goes on
    truncated       cut at its token limit, where that is not wanted     the node tries again
    refused         withheld, or the request turned down                 the walk is rejected
    unparsable      not of the form that was asked for                   the node tries again
    off-schema      of the form, but it breaks the node's contract       the node tries again
    judge-rejected  its judge did not pass it                            the loop's next round
    rate-limited    the endpoint says to slow down                       waits; counts as nothing
    transient       a failure that may pass                              tried again, a few times
    fatal           a failure that no retry mends                        the run stops

A node that has tried as often as it may ends its walk as rejected; a call that has, ends it as
failed, and the same command tries that walk again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dataforge.errors import CallOutcome

__all__ = ["AGAIN", "Again"]

Again = Literal["no", "attempt", "round", "call", "always", "stop"]
"""What is tried again: nothing, the node, its loop, the call, the call for ever; or all stops."""

AGAIN: Mapping[CallOutcome, Again] = {
    "ok": "no",
    "truncated": "attempt",
    "refused": "no",
    "unparsable": "attempt",
    "off-schema": "attempt",
    "judge-rejected": "round",
    "rate-limited": "always",
    "transient": "call",
    "fatal": "stop",
}
