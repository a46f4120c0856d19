"""Memories, questions and what is relevant, as JSON lines: `NAME.items.jsonl` and `NAME.queries.jsonl` in one folder.

A set is told in steps: some memories come, then some questions are asked. A question with a time may be answered from
earlier memories alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from lorebus import LorebusError
from pydantic import BaseModel, ValidationError

RowT = TypeVar("RowT", bound=BaseModel)

LATE = "~"
"""After every time: a question without one comes last."""
NOT_JUDGED = frozenset({"adversarial"})
"""Questions that have no answer in the conversation, whatever their label."""


class DataUnreadable(LorebusError):
    """The folder holds no such data; the message names file and line, never a text."""


class Item(BaseModel, frozen=True):
    id: str
    scope: str
    text: str
    ts: str | None = None
    session: str | None = None


class Query(BaseModel, frozen=True):
    """`groups`: evidence that several items carry is covered by any of them."""

    id: str
    scope: str
    text: str
    relevant: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...] | None = None
    ts: str | None = None
    type: str = ""
    noisy: str = ""
    """The same in the end of a log, where there is one."""


@dataclass(frozen=True, slots=True)
class SetForm:
    """A set of data, and how it is asked. `is_dialog`: an item is a turn, understood from the one before it."""

    name: str
    title: str
    asks: Literal["text", "noisy"] = "text"
    is_dialog: bool = False
    is_off_topic_judged: bool = False
    """What is asked in one scope is asked in another one, too, where silence is right."""


SETS = (
    SetForm("cilog_clippy", "end of a CI log → lesson", asks="noisy"),
    SetForm("dups_hadoop", "failure → its duplicate"),
    SetForm("locomo_turns", "question → turn of a dialog", is_dialog=True),
    SetForm("locomo_observations", "question → fact", is_off_topic_judged=True),
)


@dataclass(frozen=True, slots=True)
class Memory:
    """`beside` is looked up but not embedded, as the rationale of a lesson is."""

    id: str
    repository: str
    text: str
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    repository: str
    elsewhere: str | None
    """A repository where it has no answer."""
    text: str
    evidence: tuple[frozenset[str], ...]
    """Each part of it is covered by any one of its items, or by one that says the same."""

    def share_in(self, ids: Sequence[str]) -> float:
        """Of the evidence, how much is among these."""
        return sum(not part.isdisjoint(ids) for part in self.evidence) / len(self.evidence)


@dataclass(frozen=True, slots=True)
class Step:
    memories: Sequence[Memory]
    questions: Sequence[Question]


@dataclass(frozen=True, slots=True)
class EvalSet:
    form: SetForm
    items: Sequence[Item]
    queries: Sequence[Query]

    def steps(self) -> Iterator[Step]:
        """Memories up to the time of the next questions, and those."""
        memories = sorted(self._memories(), key=lambda pair: pair[0])
        questions = sorted(self._questions(), key=lambda pair: pair[0])
        told = 0
        for time in sorted({time for time, _ in questions}):
            came = [memory for at, memory in memories[told:] if at < time]
            told += len(came)
            yield Step(came, [question for at, question in questions if at == time])

    def _memories(self) -> Iterator[tuple[str, Memory]]:
        before: Item | None = None
        for item in self.items:
            is_next = before is not None and (before.scope, before.session) == (item.scope, item.session)
            beside = before.text if before is not None and is_next and self.form.is_dialog else ""
            yield item.ts or "", Memory(item.id, self._repository_of(item.scope), item.text, beside)
            before = item

    def _questions(self) -> Iterator[tuple[str, Question]]:
        following = self._following()
        same = self._find_same()
        for query in self.queries:
            text = query.noisy if self.form.asks == "noisy" else query.text
            parts = query.groups or tuple((id_,) for id_ in query.relevant)
            evidence = tuple(frozenset(one for id_ in part for one in same.get(id_, (id_,))) for part in parts)
            repository, elsewhere = self._repository_of(query.scope), following.get(query.scope)
            yield query.ts or LATE, Question(query.id, repository, elsewhere, text, evidence)

    def _following(self) -> dict[str, str]:
        """By scope the repository of the next one, where questions off its topic are asked."""
        scopes = sorted({item.scope for item in self.items})
        if not self.form.is_off_topic_judged or len(scopes) == 1:
            return {}
        return {scope: self._repository_of(scopes[place - len(scopes) + 1]) for place, scope in enumerate(scopes)}

    def _find_same(self) -> dict[str, Sequence[str]]:
        """By id all ids in the scope whose text is the same: recall gives one of them."""
        by_text: dict[tuple[str, str], list[str]] = {}
        for item in self.items:
            by_text.setdefault((item.scope, " ".join(item.text.lower().split())), []).append(item.id)
        return {id_: ids for ids in by_text.values() for id_ in ids}

    def _repository_of(self, scope: str) -> str:
        """Of this set alone. Its name says nothing but the scope: recall leaves its words out of every question."""
        return f"{scope}/{scope}-{SETS.index(self.form)}"


def read_sets(folder: Path) -> list[EvalSet]:
    """Those that are there. Raises DataUnreadable."""
    found = [_read_set(folder, form) for form in SETS if (folder / f"{form.name}.items.jsonl").exists()]
    if not found:
        raise DataUnreadable(f"{folder} holds none of {', '.join(f'{form.name}.items.jsonl' for form in SETS)}")
    return found


def _read_set(folder: Path, form: SetForm) -> EvalSet:
    items = _read_rows(folder / f"{form.name}.items.jsonl", Item)
    queries = _read_rows(folder / f"{form.name}.queries.jsonl", Query)
    return EvalSet(form, items, [query for query in queries if query.relevant and query.type not in NOT_JUDGED])


def _read_rows(path: Path, row: type[RowT]) -> list[RowT]:
    try:
        # Not splitlines: JSON leaves U+2028 within a line.
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataUnreadable(f"{path} cannot be read: {type(error).__name__}") from error
    return [_read_row(path, number, line, row) for number, line in enumerate(lines, start=1) if line.strip()]


def _read_row(path: Path, number: int, line: str, row: type[RowT]) -> RowT:
    try:
        return row.model_validate_json(line)
    except ValidationError as error:
        fields = ", ".join(sorted({".".join(map(str, fault["loc"])) or "the line" for fault in error.errors()}))
        raise DataUnreadable(f"{path}, line {number}: wrong: {fields}") from error
