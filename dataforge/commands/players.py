"""Who plays a graph's roles: from `--model role=spec` and the graph's defaults to opened models.

Roles with the same spec share one opened model, and so its limit on calls at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from difflib import get_close_matches
from typing import TYPE_CHECKING

from dataforge.errors import UsageError

if TYPE_CHECKING:
    from dataforge.library.root import Library
    from dataforge.run.roles import Role

__all__ = ["bindings", "judge_card", "open_players", "specs"]

_CODE = "code:"
_ADDRESS = ("http://", "https://")


def bindings(given: Iterable[str]) -> dict[str, str]:
    """Role -> spec of `ROLE=SPEC` arguments; endpoints given to one role stand in one spec.

    UsageError for one that is no such argument, and for a role given two models.
    """
    bound: dict[str, str] = {}
    for each in given:
        role, equals, spec = each.partition("=")
        if not (role and equals and spec):
            raise UsageError(f"--model {each}: write ROLE=SPEC, as in --model answerer=embedded")
        known = bound.get(role)
        if known is not None and known != spec:
            if not (known.startswith(_ADDRESS) and spec.startswith(_ADDRESS)):
                raise UsageError(
                    f"--model: role {role!r} is given both {known} and {spec}; only endpoints "
                    "of one model can serve a role together"
                )
            spec = f"{known} {spec}"
        bound[role] = spec
    return bound


def specs(
    roles: Iterable[str], defaults: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """Role -> spec for every role of a graph; UsageError for one unknown or left open."""
    wanted = sorted(roles)
    for role in given:
        if role not in wanted:
            near = get_close_matches(role, wanted, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise UsageError(
                f"--model {role}=…: the graph has no role {role!r}{hint} "
                f"Its roles: {', '.join(wanted) or 'none'}"
            )
    chosen = {**defaults, **given}
    for role in wanted:
        if role not in chosen:
            raise UsageError(f"role {role!r} has no model: give --model {role}=SPEC")
    return {role: chosen[role] for role in wanted}


async def open_players(
    chosen: Mapping[str, str],
    library: Library,
    stack: AsyncExitStack,
    say: Callable[[str], None],
    *,
    opened: bool = True,
) -> dict[str, Role]:
    """Role -> the opened model or judge; `stack` closes them. Without `opened`, models are named
    and not opened, so that who would play is known and nothing can be asked."""
    from dataforge.library.judges import load_code_judge
    from dataforge.models.pool import address_of, read_pool
    from dataforge.models.specs import open_model, read_spec, weights_of
    from dataforge.run.roles import OpenJudge, OpenModel, Served

    # Opening a model takes seconds: a misspelt spec is told first.
    models = {spec: read_pool(spec) for spec in chosen.values() if not spec.startswith(_CODE)}
    shares = {each: read_spec(each).share for found in models.values() for each in found.specs}
    players: dict[str, Role] = {}
    for spec in dict.fromkeys(chosen.values()):
        playing = [each for each, named in chosen.items() if named == spec]
        if opened:
            say(f"opening {spec} for {', '.join(playing)}")
        if spec.startswith(_CODE):
            judge = load_code_judge(spec.removeprefix(_CODE), library)
            players[spec] = OpenJudge(spec, judge.judge, judge.weights, judge.digest)
        else:
            served = []
            for each in models[spec].specs if opened else ():
                transport = open_model(each)
                stack.push_async_callback(transport.close)
                served.append(Served(transport, each, address_of(each), shares[each]))
            weights = weights_of(models[spec].specs[0])
            players[spec] = OpenModel(spec, weights, tuple(served), models[spec].file)
    return {role: players[spec] for role, spec in chosen.items()}


def judge_card(chosen: Mapping[str, str], library: Library) -> str:
    """What was measured of the code judges that play, as text; empty when there are none."""
    from dataforge.evals.card import load_card, say_card, stale

    cards = []
    for spec in sorted({spec for spec in chosen.values() if spec.startswith(_CODE)}):
        file = library.find("judges", spec.removeprefix(_CODE), ".py")
        card = load_card(file)
        cards.append(say_card(card, stale(card, file) if card else ()))
    return "\n\n".join(cards)
