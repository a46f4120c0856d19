"""How the gate compares, in one run on one corpus: with a list of keywords, and with a package that can be installed.

The corpus is that of the shared data, or one named. Times are of one core, at first sight of each text.

    python -m bench.gate [corpus.jsonl]

The package is compared when it is there; it is no dependency of ours: pip install promptbadger==0.3.1
"""

import argparse
import importlib.util
import os
import re
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from cli.evaluations.corpus import GROUPS, Row, read_corpus
from cli.evaluations.costs import KILOBYTE
from cli.evaluations.shares import Share, share_of
from services.gate.patterns import load_builtin_patterns
from services.gate.scan import Scanner

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("LOREBUS_SHARED", ROOT.parent / "shared"))
PACKAGE = "promptbadger"

Refuses = Callable[[str], bool]

KEYWORDS = (
    r"ignore (?:all |any )?(?:the )?(?:previous|prior|above) (?:instructions|prompts)",
    r"disregard (?:all |the )?(?:previous|prior|above|your) (?:instructions|rules|guidelines)",
    r"forget (?:everything|all (?:your |the )?instructions)",
    r"you are now (?:a|an) ",
    r"act as (?:a|an) ",
    r"pretend (?:to be|you are)",
    r"system prompt",
    r"new instructions:",
    r"do anything now|\bDAN\b|jailbreak|developer mode",
    r"(?:reveal|show|print|repeat) (?:me )?(?:your|the) (?:system |initial )?(?:prompt|instructions)",
    r"bypass (?:the |your |all )?(?:safety|content|security) ",
    r"<\|im_start\|>|\[INST\]|<<SYS>>",
)
"""What most projects that filter prompts at all begin with."""


def build_keyword_list() -> Refuses:
    patterns = [re.compile(source, re.IGNORECASE) for source in KEYWORDS]
    return lambda text: any(pattern.search(text) for pattern in patterns)


def build_gate() -> Refuses:
    scanner = Scanner(load_builtin_patterns())
    return lambda text: bool(scanner.scan(text, 0.0).matched)


def build_package() -> Refuses:
    """As it wants texts from elsewhere to be read, with the threshold that it ships."""
    scanner: Any = import_module(PACKAGE).Scanner()
    return lambda text: bool(scanner.scan_context(text).is_injection)


def measure(refuses: Refuses, rows: Sequence[Row]) -> tuple[dict[str, Share], float]:
    """The refused share of each group, and microseconds a kilobyte."""
    refuses("The first text pays for what is built on first use.")
    started = time.thread_time()
    refused = [refuses(row.text) for row in rows]
    seconds = time.thread_time() - started
    shares = {
        group.name: share_of(hit for row, hit in zip(rows, refused, strict=True) if group.has(row)) for group in GROUPS
    }
    return shares, seconds * 1e6 * KILOBYTE / sum(len(row.text.encode()) for row in rows)


def render_table(measured: dict[str, tuple[dict[str, Share], float]]) -> str:
    lines = [f"{'refused':<34}" + "".join(f"{name:>16}" for name in measured)]
    for group in GROUPS:
        shares = [found[group.name] for found, _ in measured.values()]
        lines.append(f"{group.name:<34}" + "".join(f"{100 * share.value:>14.1f} %" for share in shares))
    lines.append(
        f"{'time, without masking':<34}" + "".join(f"{micros:>10.0f} µs/KB" for _, micros in measured.values())
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", type=Path, default=SHARED / "gate-corpus" / "dev.jsonl")
    rows = read_corpus(parser.parse_args().corpus)
    builders = {"this gate": build_gate, "keyword list": build_keyword_list}
    if importlib.util.find_spec(PACKAGE):
        builders[PACKAGE] = build_package
    print(f"{len(rows)} texts, {sum(row.is_attack for row in rows)} of them attacks\n")
    print(render_table({name: measure(build(), rows) for name, build in builders.items()}))
    if PACKAGE not in builders:
        print(f"\n{PACKAGE} is not installed, so it is not compared: .venv/bin/pip install {PACKAGE}==0.3.1")


if __name__ == "__main__":
    main()
