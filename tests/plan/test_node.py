from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import pytest
from annotated_types import MinLen

from dataforge import Absent, Judge, Message, Model, Node, Reply, Struct, gate, node
from dataforge.errors import DeclarationError
from dataforge.plan.shape import Shape
from dataforge.plan.struct import facts
from tests.plan.scene import TEXT, acts, at_least, one_of

if TYPE_CHECKING:
    from pathlib import Path


class Passage(Struct):
    passage: Annotated[str, MinLen(5)]
    instruction: Absent = None


class Instruction(Struct):
    instruction: str
    kind: Literal["debate"]


class Tone:
    """A type that pydantic knows nothing of."""


@node(attempts=3, weight=2.0, tags=["asking"])
async def ask(
    seen: Passage, *, writer: Model, tone: Literal["plain", "warm"] = "plain", limit: float = 1
) -> Instruction:
    reply = await writer.chat([Message("user", f"{tone} {limit}: {seen.passage}")])
    return Instruction(instruction=reply.text, kind="debate")


class Echo:
    """A model that repeats what it is told."""

    __dataforge_role__ = "model"

    async def chat(
        self,
        messages: object,
        *,
        temperature: float = 0.7,
        top_p: float = 1.0,
        max_tokens: int = 512,
        schema: object = None,
    ) -> Reply:
        assert isinstance(messages, list)
        return Reply(text=messages[-1].content, finish="stop", tokens_in=1, tokens_out=1)


def test_a_function_says_all_of_a_node() -> None:
    assert ask.name == "ask"
    assert ask.preconditions == {"passage": at_least(5), "instruction": None}
    assert ask.postconditions == {"instruction": TEXT, "kind": one_of("debate")}
    assert ask.roles == {"writer": "model"}
    assert ask.settings == {"tone": "plain", "limit": 1.0}
    assert (ask.attempts, ask.weight, ask.tags) == (3, 2.0, frozenset({"asking"}))


async def test_a_node_is_called_with_a_struct_its_roles_and_settings() -> None:
    made = await ask.with_settings(tone="warm")(Passage(passage="a text"), writer=Echo(), limit=2)
    assert made == Instruction(instruction="warm 2: a text", kind="debate")


def test_a_bare_decorator_and_names_of_an_enclosing_function_work() -> None:
    class Local(Struct):
        text: str

    @node(judges="text")
    async def local(seen: Local, *, judge: Judge) -> Local:
        return seen

    assert local.preconditions == {"text": TEXT}
    assert local.roles == {"judge": "judge"}


def test_a_judge_without_the_field_it_judges_is_refused() -> None:
    class Local(Struct):
        text: str

    with pytest.raises(DeclarationError, match=r"'critic' is a judge: say which field it judges"):

        @node
        async def local(seen: Local, *, critic: Judge) -> Local:
            return seen


def test_a_setting_is_checked_against_its_annotation() -> None:
    with pytest.raises(DeclarationError, match="setting 'tone' is 'cold': Input should be 'plain'"):
        ask.with_settings(tone="cold")
    with pytest.raises(DeclarationError, match="setting 'limit' is 'high'"):
        ask.with_settings(limit="high")
    assert ask.with_settings(limit=3).settings["limit"] == 3.0


def test_an_unknown_setting_names_those_there_are_and_the_nearest() -> None:
    with pytest.raises(DeclarationError, match=r"no setting 'tones'; it has tone, limit; did you"):
        ask.with_settings(tones="warm")


def test_settings_given_as_toml_would_give_them_are_read() -> None:
    @node
    async def pick(seen: Passage, *, sizes: tuple[int, ...] = (1,)) -> Instruction:
        raise NotImplementedError

    assert pick.with_settings(sizes=[2, 3]).settings["sizes"] == (2, 3)


def test_a_sync_function_is_refused_with_file_and_line() -> None:
    with pytest.raises(DeclarationError, match=r"test_node.py:\d+: node 'blocking': .*async def"):

        @node  # type: ignore[arg-type]
        def blocking(seen: Passage) -> Instruction:
            raise NotImplementedError


def test_a_setting_without_a_default_is_refused() -> None:
    with pytest.raises(DeclarationError, match="'tone' needs a default"):

        @node
        async def bad(seen: Passage, *, tone: str) -> Instruction:
            raise NotImplementedError


def test_a_positional_role_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"'writer' must be keyword-only; put `\*,` before"):

        @node
        async def bad(seen: Passage, writer: Model) -> Instruction:
            raise NotImplementedError


def test_a_first_parameter_that_is_no_struct_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"the first parameter, 'seen', is <class 'str'>"):

        @node  # type: ignore[type-var]
        async def bad(seen: str) -> Instruction:
            raise NotImplementedError


def test_a_missing_return_type_is_refused() -> None:
    with pytest.raises(DeclarationError, match="the return type has no annotation"):

        @node
        async def bad(seen: Passage):  # type: ignore[no-untyped-def]
            raise NotImplementedError


def test_a_name_imported_for_checkers_only_is_refused_by_name() -> None:
    with pytest.raises(DeclarationError, match="the name 'Path' in an annotation does not resolve"):

        @node
        async def bad(seen: Passage, *, where: Path | None = None) -> Instruction:
            raise NotImplementedError


def test_a_name_missing_from_a_module_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"annotation does not resolve: .*'Nowhere'"):

        @node
        async def bad(seen: pytest.Nowhere) -> Instruction:  # type: ignore[name-defined]
            raise NotImplementedError


def test_a_setting_of_a_type_that_cannot_be_checked_is_refused() -> None:
    with pytest.raises(DeclarationError, match="setting 'tone'"):

        @node
        async def bad(seen: Passage, *, tone: Tone | None = None) -> Instruction:
            raise NotImplementedError


def test_a_node_is_tried_at_least_once() -> None:
    with pytest.raises(DeclarationError, match="attempts is 0; the least is 1"):

        @node(attempts=0)
        async def bad(seen: Passage) -> Instruction:
            raise NotImplementedError


def test_another_name_keeps_all_else() -> None:
    renamed = ask.renamed("ask/debate")
    assert renamed.name == "ask/debate"
    assert renamed.settings == ask.settings
    assert renamed.makes is ask.makes


async def test_a_gate_demands_and_changes_nothing() -> None:
    gated = gate("seed/gate", {"passage": at_least(5), "note": Shape(str, maybe=True)})
    assert gated.preconditions == {"passage": at_least(5), "note": Shape(str, maybe=True)}
    assert gated.postconditions == {}
    assert facts(await gated(gated.takes.model_validate({"passage": "a text"}))) == {}


class TestDigest:
    def test_it_is_the_same_for_the_same_node(self) -> None:
        assert acts("a", {}, {"x": TEXT}).digest == acts("a", {}, {"x": TEXT}).digest

    @pytest.mark.parametrize(
        "other",
        [
            acts("b", {"y": TEXT}, {"x": TEXT}, source="s"),
            acts("a", {"y": at_least(1)}, {"x": TEXT}, source="s"),
            acts("a", {"y": TEXT}, {"x": at_least(1)}, source="s"),
            acts("a", {"y": TEXT}, {"x": TEXT}, source="another prompt"),
            acts("a", {"y": TEXT}, {"x": TEXT}, source="s", weight=2.0),
            acts("a", {"y": TEXT}, {"x": TEXT}, source="s", roles={"writer": "model"}),
        ],
    )
    def test_it_changes_with_all_that_decides_what_a_node_does(
        self, other: Node[Struct, Struct]
    ) -> None:
        assert acts("a", {"y": TEXT}, {"x": TEXT}, source="s").digest != other.digest

    def test_it_changes_with_settings(self) -> None:
        assert ask.digest != ask.with_settings(tone="warm").digest
