"""Which result answers which call, each pair once however often the transcript repeats it."""

from collections import defaultdict
from collections.abc import Iterator

from services.writer.transcripts.records import Group, ToolCall, ToolResult

Pair = tuple[ToolCall, ToolResult]


class Pairing:
    """The calls of one transcript that have met a result.

    Without ids two calls that are alike in tool, input and result cannot be told from a replay and count as one.
    """

    def __init__(self) -> None:
        self._open: dict[str, ToolCall] = {}
        self._met: set[str] = set()
        self._met_without_id: set[int] = set()

    def add(self, group: Group) -> Iterator[Pair]:
        """The pairs that this group completes."""
        yield from self._pair_by_id(group)
        yield from self._pair_by_position(group)

    def _pair_by_id(self, group: Group) -> Iterator[Pair]:
        for record in group:
            if isinstance(record, ToolCall) and record.call_id and record.call_id not in self._met:
                self._met.add(record.call_id)
                self._open[record.call_id] = record
            elif isinstance(record, ToolResult) and record.call_id and record.call_id in self._open:
                yield self._open.pop(record.call_id), record

    def _pair_by_position(self, group: Group) -> Iterator[Pair]:
        calls: dict[str, list[ToolCall]] = defaultdict(list)
        results: dict[str, list[ToolResult]] = defaultdict(list)
        for record in group:
            if isinstance(record, ToolCall) and record.call_id is None:
                calls[record.tool].append(record)
            elif isinstance(record, ToolResult) and record.call_id is None:
                results[record.tool].append(record)
        for tool, waiting in calls.items():
            yield from (pair for pair in zip(waiting, results[tool], strict=False) if self._is_new(*pair))

    def _is_new(self, call: ToolCall, result: ToolResult) -> bool:
        key = hash((call.tool, call.input, result.text))
        is_new = key not in self._met_without_id
        self._met_without_id.add(key)
        return is_new
