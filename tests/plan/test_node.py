from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import partial, wraps
from inspect import getsourcelines
from pathlib import Path
from threading import Lock, current_thread, main_thread
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from annotated_types import MinLen
from pydantic import ValidationError

from dataforge import (
    Absent,
    Graph,
    Judge,
    Message,
    Model,
    Node,
    Reply,
    Struct,
    Unmet,
    gate,
    loop,
    node,
)
from dataforge.errors import DeclarationError
from dataforge.plan.shape import Shape
from dataforge.plan.struct import facts
from tests.plan.scene import TEXT, acts, at_least, one_of

if TYPE_CHECKING:
    from decimal import Decimal


class Passage(Struct):
    passage: Annotated[str, MinLen(5)]
    instruction: Absent = None


class Instruction(Struct):
    instruction: str
    kind: Literal["debate"]


class Colour(Enum):
    RED = 1


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
        **asked: object,
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


ASKED: ContextVar[str] = ContextVar("asked", default="nothing")


async def test_a_sync_function_runs_in_a_thread_of_its_own_with_its_context() -> None:
    @node(attempts=2)
    def counted(seen: Passage, *, times: int = 1) -> Instruction:
        thread = current_thread() is main_thread()
        return Instruction(instruction=f"{ASKED.get()} {thread} {times}", kind="debate")

    ASKED.set("debates")
    made = await counted(Passage(passage="words"), times=3)
    assert made.instruction == "debates False 3"
    assert (counted.name, counted.attempts, counted.settings) == ("counted", 2, {"times": 1})


async def test_what_a_sync_function_raises_comes_through() -> None:
    @node
    def broken(seen: Passage) -> Instruction:
        raise Unmet("nothing to count")

    with pytest.raises(Unmet, match="nothing to count"):
        await broken(Passage(passage="words"))


def test_a_sync_function_cannot_ask_a_model() -> None:
    with pytest.raises(DeclarationError, match=r"test_node.py:\d+: node 'bad': 'writer' can only"):

        @node
        def bad(seen: Passage, *, writer: Model) -> Instruction:
            raise NotImplementedError


@dataclass(frozen=True)
class Retell:
    """A node with a state: what it asks for, and how long."""

    form: str
    length: int = 50

    async def __call__(self, seen: Passage, *, writer: Model, tone: str = "plain") -> Instruction:
        asked = f"{self.form} of {self.length} words, {tone}: {seen.passage}"
        reply = await writer.chat([Message("user", asked)])
        return Instruction(instruction=reply.text, kind="debate")


async def test_an_object_is_a_node_with_what_it_holds_as_its_state() -> None:
    haiku = node(Retell("haiku"), name="haiku", tags=["verse"])
    made = await haiku(Passage(passage="words"), writer=Echo(), tone="warm")
    assert made.instruction == "haiku of 50 words, warm: words"
    assert (haiku.roles, haiku.settings, haiku.tags) == (
        *({"writer": "model"}, {"tone": "plain"}),
        frozenset({"verse"}),
    )


def test_what_an_object_holds_is_in_the_digest_and_nothing_that_changes_by_itself() -> None:
    one, same = node(Retell("haiku"), name="x"), node(Retell("haiku"), name="x")
    assert one.digest == same.digest
    assert node(Retell("ode"), name="x").digest != one.digest
    assert node(Retell("haiku", 60), name="x").digest != one.digest


class Opaque:
    """A node that holds what has no stable text."""

    def __init__(self, what: object) -> None:
        self.what = what

    async def __call__(self, seen: Passage) -> Instruction:
        raise NotImplementedError


class Shared:
    """A node function that belongs to a class."""

    @classmethod
    async def ask(cls, seen: Passage) -> Instruction:
        return Instruction(instruction=cls.__name__, kind="debate")


async def test_a_method_of_a_class_is_a_node() -> None:
    asked = node(Shared.ask)
    assert asked.name == "ask"
    assert (await asked(Passage(passage="words"))).instruction == "Shared"


def test_a_decorator_that_hides_an_async_function_is_refused() -> None:
    def plain(run: Callable[..., object]) -> Callable[..., object]:
        @wraps(run)
        def inner(*given: object, **named: object) -> object:
            return run(*given, **named)

        return inner

    with pytest.raises(DeclarationError, match="its decorator makes a plain function of an async"):

        @node  # type: ignore[arg-type]
        @plain
        async def hidden(seen: Passage) -> Instruction:
            raise NotImplementedError


def test_a_state_without_a_stable_text_is_refused_with_the_line_of_the_call() -> None:
    with pytest.raises(
        DeclarationError,
        match=r"test_node.py:\d+: node of a Opaque: Opaque holds a lock, which has no text",
    ):
        node(Opaque(Lock()), name="opaque")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"b", "a", "c"}, {"c", "b", "a"}),
        ({"x": 1, "y": [2]}, {"y": [2], "x": 1}),
        (re.compile("a"), re.compile("a")),
        (Retell("ode"), Retell("ode")),
        (Path("a") / "b", Path("a/b")),
        ([Colour.RED, None, 1.5, b"x", Retell], [Colour.RED, None, 1.5, b"x", Retell]),
    ],
)
def test_equal_states_have_one_digest(one: object, other: object) -> None:
    assert node(Opaque(one), name="x").digest == node(Opaque(other), name="x").digest


def test_an_object_needs_a_name() -> None:
    with pytest.raises(DeclarationError, match="an object has no name of its own; write node"):
        node(Retell("haiku"))


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (partial(Retell("x").__call__), "a partial does not show what it takes and makes"),
        (print, "a builtin_function_or_method does not show"),
        (lambda seen: seen, "has no annotation; it must be a subclass of Struct"),
    ],
)
def test_what_shows_no_signature_is_refused(run: Callable[..., Struct], said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        node(run, name="x")


def test_a_generator_is_refused() -> None:
    with pytest.raises(DeclarationError, match="a node returns one Struct; it cannot yield"):

        @node  # type: ignore[arg-type]
        async def many(seen: Passage) -> AsyncIterator[Instruction]:
            yield Instruction(instruction="x", kind="debate")


class Kinds(Struct):
    text: str
    kind: Literal["debate", "summary", "quiz"]


def family() -> list[Node[Kinds, Kinds]]:
    made = []
    for kind in ("debate", "summary"):

        @node(name=f"about/{kind}", needs={"kind": ["quiz", kind]}, promises={"kind": kind})
        async def about(seen: Kinds) -> Kinds:
            return seen

        made.append(about)
    return made


def test_members_of_a_family_need_and_promise_less_than_their_struct_allows() -> None:
    debate, summary = family()
    assert (debate.name, summary.name) == ("about/debate", "about/summary")
    assert debate.preconditions["kind"] == one_of("debate", "quiz")
    assert debate.postconditions["kind"] == one_of("debate")
    assert summary.postconditions["text"] == TEXT
    assert debate.digest != summary.digest
    with pytest.raises(ValidationError):
        debate.takes(text="x", kind="summary")


@pytest.mark.parametrize(
    ("promises", "said"),
    [
        ({"kind": "poem"}, "'debate', 'quiz', 'summary', so it cannot be narrowed to 'poem'"),
        ({"form": "poem"}, "Kinds has no field 'form' to narrow; it has text, kind"),
        ({"text": ["a", 1]}, "narrowed to"),
    ],
)
def test_a_promise_that_the_struct_does_not_allow_is_refused(
    promises: dict[str, object], said: str
) -> None:
    with pytest.raises(DeclarationError, match=said):

        @node(promises=promises)
        async def about(seen: Kinds) -> Kinds:
            return seen


def test_a_field_that_cannot_be_read_is_told_by_its_own_line() -> None:
    class Wrong(Struct):
        fine: str
        wrong: int | str

    line = getsourcelines(Wrong)[1] + 2
    with pytest.raises(DeclarationError, match=rf"^test_node.py:{line}: field 'wrong' of Wrong"):

        @node
        async def bad(seen: Wrong) -> Instruction:
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
    with pytest.raises(
        DeclarationError, match="the name 'Decimal' in an annotation does not resolve"
    ):

        @node
        async def bad(seen: Passage, *, where: Decimal | None = None) -> Instruction:
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


@pytest.mark.parametrize("name", [None, "another"])
@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"weight": 0}, {"judges": "nothing"}])
def test_an_error_says_a_node_s_name_once(name: str | None, wrong: dict[str, Any]) -> None:
    async def bad(seen: Passage) -> Instruction:
        raise NotImplementedError

    with pytest.raises(DeclarationError, match=r"^test_node\.py:\d+: node 'bad': ") as caught:
        node(bad, name=name, **wrong)
    assert "bad: " not in str(caught.value).partition("node 'bad': ")[2]
    assert "another: " not in str(caught.value)


def test_tags_given_as_one_text_are_refused_and_not_split_into_letters() -> None:
    async def bad(seen: Passage) -> Instruction:
        raise NotImplementedError

    with pytest.raises(DeclarationError, match=r"tags is the text 'xy'; write a list .*\['xy'\]"):
        node(bad, tags="xy")
    with pytest.raises(DeclarationError, match="tags is the text 'xy'"):
        loop("l", [ask], until={}, at_most=1, tags="xy")
    with pytest.raises(DeclarationError, match="tags is the text 'xy'"):
        Graph.build("g", [ask], "ask", "ask", tags="xy")
    with pytest.raises(DeclarationError, match="named is the text 'xy'"):
        Graph.build("g", [ask], "ask", "ask", named="xy")
    assert node(bad, tags=["xy"]).tags == {"xy"}


@pytest.mark.parametrize(
    "name",
    ["*", "a\nb", "tag:x", "graph:x", "a?", "a[b]", "", " a", "a ", "a\tb", "\0", "a\u2028b"],
)
def test_a_name_that_no_graph_could_mean_outright_is_refused(name: str) -> None:
    async def bad(seen: Passage) -> Instruction:
        raise NotImplementedError

    with pytest.raises(DeclarationError, match=r"a name is of letters, digits|needs a name"):
        node(bad, name=name)


@pytest.mark.parametrize(
    "name", ["a", "ask/a+b", "a b", "Größe", "a.b", "x'", "{a}", "a-b_c", "日本"]
)
def test_any_other_name_will_do(name: str) -> None:
    async def good(seen: Passage) -> Instruction:
        raise NotImplementedError

    assert node(good, name=name).name == name


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
