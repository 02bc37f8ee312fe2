"""What a run directory was begun with, so that it is never continued as something else.

The fingerprint covers all that decides what a walk would be: graph, models, seeds, run seed, walk
policy. How many walks, how fast and where a model is reached are left out, as they may change
between one sitting and the next. Keys and addresses with passwords never reach it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from dataforge.corpus.atomic import replace_file
from dataforge.errors import InputError, RunError, RunMismatch
from dataforge.models.text import clean
from dataforge.plan.action import leaves
from dataforge.run.order import Order
from dataforge.run.policy import Policy
from dataforge.run.roles import OpenJudge, Role

__all__ = ["Manifest", "RoleMark", "load_manifest", "settle"]

FORMAT = 3
"""Rises whenever a run directory of before can no longer be read."""


class RoleMark(BaseModel):
    """Who plays a role."""

    model_config = ConfigDict(frozen=True)

    spec: str
    """As the user named it."""
    weights: str
    """Identity of the weights; also says whether a judge judges its own."""
    digest: str = ""
    """Of a code judge's source."""


class Manifest(BaseModel):
    """`run.json`."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    graph: str
    graph_digest: str
    nodes: dict[str, str]
    """Node -> digest, at any depth."""
    roles: dict[str, RoleMark]
    run_seed: int
    policy: Policy
    """By which rule its walks are chosen."""
    seeds: str
    """Path they were read from."""
    seed_count: int
    seeds_digest: str
    walks: int
    """How many are asked for, by the latest command."""
    parted: bool = False
    """The directory is divided into parts, as a crew of several makes it."""
    overrides: tuple[str, ...] = ()
    """Rules the user set aside."""
    changes: tuple[str, ...] = ()
    """Differences the user accepted, oldest first."""

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits; walks that ended under another are walked again."""
        roles = {name: [mark.weights, mark.digest] for name, mark in self.roles.items()}
        told = [self.graph_digest, roles, self.run_seed, self.policy, self.seeds_digest]
        return hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=8).hexdigest()

    @classmethod
    def of(cls, order: Order, overrides: tuple[str, ...], *, parted: bool) -> Manifest:
        """The manifest of a run about to begin."""
        graph, seeds = order.graph, order.seeds
        return cls(
            graph=graph.name,
            graph_digest=graph.digest,
            nodes={leaf.name: leaf.digest for leaf in leaves(graph)},
            roles={role: _mark(order.players[role]) for role in sorted(graph.roles)},
            run_seed=order.run_seed,
            policy=order.policy,
            seeds=clean(seeds.path),
            seed_count=len(seeds),
            seeds_digest=seeds.digest,
            walks=order.walks,
            parted=parted,
            overrides=overrides,
        )

    def differences(self, now: Manifest) -> list[str]:
        """What decides a walk and is not as it was, in words; empty when nothing is."""
        found = []
        if self.graph != now.graph:
            found.append(f"graph: was {self.graph}, now {now.graph}")
        elif self.graph_digest != now.graph_digest:
            nodes = _changed_nodes(self.nodes, now.nodes)
            found += nodes or [f"graph {now.graph}: its source, target, loops or weights changed"]
        for role in sorted(self.roles.keys() | now.roles.keys()):
            was, new = self.roles.get(role), now.roles.get(role)
            if was is None or new is None:
                found.append(f"role {role}: {'is new' if was is None else 'is gone'}")
            elif was.weights != new.weights:
                found.append(f"role {role}: was {_said(was)}, now {_said(new)}")
            elif was.digest != new.digest:
                found.append(f"role {role}: the code of {new.spec} changed")
        if self.run_seed != now.run_seed:
            found.append(f"run seed: was {self.run_seed}, now {now.run_seed}")
        if self.policy != now.policy:
            found.append(f"policy: was {self.policy}, now {now.policy}")
        if self.seeds_digest != now.seeds_digest:
            found.append(
                f"seeds: were {self.seed_count} of {self.seeds}, "
                f"now {now.seed_count} of {now.seeds} with other ids or texts"
            )
        return found


def settle(folder: Path, now: Manifest, accept_changes: bool) -> Manifest:
    """Writes and gives the manifest of `folder`, which holds the run `now` or can begin it.

    Raises RunMismatch naming every difference unless `accept_changes`, RunError if the folder holds
    something else.
    """
    if (folder / "run.json").exists():
        was = load_manifest(folder)
        found = was.differences(now)
        if found and not accept_changes:
            listed = "\n".join(f"  {line}" for line in found)
            raise RunMismatch(
                f"{folder} was begun otherwise:\n{listed}\n"
                "Give another directory with --out, or --accept-changes to walk again what this "
                "changes; calls that stay the same are not repeated"
            )
        overrides = tuple(dict.fromkeys(was.overrides + now.overrides))
        if was.parted != now.parted:
            how = ("without --on", "with --on ray")
            raise RunError(
                f"{folder} was begun {how[was.parted]} and goes on only so; "
                "give another directory with --out to begin anew"
            )
        now = now.model_copy(
            update={
                "overrides": overrides,
                "changes": was.changes + tuple(found),
            }
        )
    elif any(path.name != "lock" and path.suffix != ".part" for path in folder.iterdir()):
        raise RunError(
            f"{folder} holds files and no run.json, so it is no run directory; "
            "give an empty or new one with --out"
        )
    text = now.model_dump_json(indent=2) + "\n"
    replace_file(folder / "run.json", lambda beside: beside.write_text(text, encoding="utf-8"))
    return now


def load_manifest(folder: Path) -> Manifest:
    """The manifest of a run directory; InputError if it is none, RunError if it is unreadable."""
    path = folder / "run.json"
    if not path.is_file():
        raise InputError(f"{folder}: no run.json here, so no run; `dataforge run` begins one")
    try:
        manifest = Manifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise RunError(f"{path}: not the record of a run ({problem['msg']})") from error
    if manifest.format != FORMAT:
        raise RunError(
            f"{path}: format {manifest.format}; this DataForge reads {FORMAT}. Give another --out"
        )
    return manifest


def _mark(player: Role) -> RoleMark:
    digest = player.digest if isinstance(player, OpenJudge) else ""
    spec = re.sub(r"//[^/@\s]*@", "//", player.spec)
    return RoleMark(spec=spec, weights=player.weights, digest=digest)


def _said(mark: RoleMark) -> str:
    return mark.spec if mark.spec == mark.weights else f"{mark.spec} ({mark.weights})"


def _changed_nodes(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    kinds = {
        "new": sorted(now.keys() - was.keys()),
        "gone": sorted(was.keys() - now.keys()),
        "changed": sorted(name for name in was.keys() & now.keys() if was[name] != now[name]),
    }
    return [f"nodes {kind}: {', '.join(names)}" for kind, names in kinds.items() if names]
