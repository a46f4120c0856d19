"""Failure fingerprints: an error line without what changes from run to run, as one number.

Two logs that hold the same error give the same fingerprint, whatever stood around it, so that an exact look-up finds
the lesson again, without an embedder too. What a great many failures say (`build failed`, `exit code 1`) tells no two
of them apart: a lesson is not found by it. Fingerprints are stored: another form of the signature means making them
anew.
"""

import hashlib
import re
from collections.abc import Iterable

from libs.common.domain.lexical import tokenize
from libs.common.domain.log_forms import STRONG
from libs.common.domain.log_lines import read_log

FINGERPRINTS_MAX = 24
TELLING_TERMS_MIN = 3

_FOLDERS = re.compile(r"(?<![\w.@~+-])(?:[\w.@~+-]*[\\/])+(?=[\w.])")
_NUMBER = re.compile(r"(?<![^\W\d])\d+(?:[.,:]\d+)*")
_REST = re.compile(r"[^\w]+")
_SAID_OF_ANY_FAILURE = frozenset(
    tokenize(
        """
        abort aborting actual assert assertion assertions assertionerror build building canceled check code command
        compilation compile compiling complete completed could couldn detail details due err error errors exception
        exit exited expect expected fail failed failing failure failures fatal finish finished found got help info
        job line lines lint log logs main make message more must need ninja non note npm number one output pass passed
        pending please previous process project received report result results return returned run running script
        see skipped status step success suite suites task tasks test tests there total two unable unexpected unknown
        warn warning warnings zero
        """
    )
)


def sign_line(line: str) -> str:
    """A cleaned line without folders, numbers and punctuation: `error cannot find module fast glob`."""
    text = _FOLDERS.sub("", line) if "/" in line or "\\" in line else line
    return _REST.sub(" ", _NUMBER.sub("0", text.lower())).strip()


def fingerprint_failure(log: str) -> tuple[int, ...]:
    """What a lesson is found by: the log's strongest lines that tell this failure from others; later ones first."""
    strong = sorted((line for line in read_log(log) if line.score >= STRONG), key=lambda line: -line.position)
    strongest = sorted(strong, key=lambda line: -line.score)
    return fingerprint_lines(line.text for line in strongest if count_telling(line.text) >= TELLING_TERMS_MIN)


def fingerprint_lines(lines: Iterable[str]) -> tuple[int, ...]:
    """What a question looks for: any line may be asked with, since only telling ones are stored."""
    signatures = dict.fromkeys(sign_line(line) for line in lines)
    return tuple(_hash(signature) for signature in signatures if signature)[:FINGERPRINTS_MAX]


def count_telling(line: str) -> int:
    """How many of its words are not said of any failure: without one, a line tells that something failed, not what."""
    return len(set(tokenize(sign_line(line))) - _SAID_OF_ANY_FAILURE)


def _hash(signature: str) -> int:
    """64 bits with a sign, as the database keeps them."""
    return int.from_bytes(hashlib.sha256(signature.encode()).digest()[:8], "big", signed=True)
