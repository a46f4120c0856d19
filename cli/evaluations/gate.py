"""The evaluation of the gate: how much it finds, how much it loses, how it takes disguises, what it costs.

It runs the gate's own scanner in this process, so that the figures are those of what is shipped.
"""

import asyncio
from collections.abc import Sequence

from cli.evaluations.corpus import Row
from cli.evaluations.costs import measure_costs
from cli.evaluations.judging import Gate, Track, judge
from cli.evaluations.report import Report
from cli.evaluations.robustness import measure_robustness
from libs.common.domain.masking import mask_text
from services.gate.patterns import Pattern, pattern_set_version
from services.gate.scan import SCAN_VERSION, Scanner
from services.gate.trial import load_smoke


async def evaluate_gate(
    rows: Sequence[Row], patterns: Sequence[Pattern], budget_seconds: float, track: Track, *, transforms: bool
) -> Report:
    """`transforms` asks for the robustness too, which takes twenty times as long."""
    scanner = Scanner(patterns, budget_seconds=budget_seconds)
    for prepare in track([scanner.prepare], "compiling the patterns"):
        await asyncio.to_thread(prepare)
    gate = Gate(scanner.scan, mask_text)
    examples = [text for pattern in patterns for text in (*pattern.must_match, *pattern.must_not_match)]
    # What only the first texts after a start pay is no price of a text.
    smoke = load_smoke()
    for text in (*examples, *smoke.lessons, *smoke.attacks):
        gate.pass_through(text)
    judged = tuple(judge(row, gate) for row in track(rows, "judging"))
    return Report(
        pattern_set=f"{SCAN_VERSION}-{pattern_set_version(patterns)}",
        patterns=len(patterns),
        judged=judged,
        costs=await measure_costs(judged, gate, examples, track),
        robustness=measure_robustness(judged, gate, track) if transforms else None,
    )
