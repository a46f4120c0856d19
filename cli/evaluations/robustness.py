"""Does a verdict survive a disguise, and another form of the same text?"""

from collections.abc import Sequence
from dataclasses import dataclass

from cli.evaluations.judging import Gate, Judged, Track
from cli.evaluations.shares import Share, share_of
from cli.evaluations.transforms import DISGUISES, FORMS


@dataclass(frozen=True, slots=True)
class Robustness:
    """Shares by the name of the transform: caught attacks that stay caught, benign texts that keep their verdict."""

    disguises: dict[str, Share]
    forms: dict[str, Share]

    @property
    def caught(self) -> Share:
        return pooled(self.disguises)

    @property
    def kept(self) -> Share:
        return pooled(self.forms)

    def as_json(self) -> dict[str, object]:
        return {
            "disguises": {name: share.as_json() for name, share in self.disguises.items()},
            "forms": {name: share.as_json() for name, share in self.forms.items()},
        }


def pooled(shares: dict[str, Share]) -> Share:
    return Share(sum(share.hits for share in shares.values()), sum(share.total for share in shares.values()))


def measure_robustness(judged: Sequence[Judged], gate: Gate, track: Track) -> Robustness:
    caught = [one for one in judged if one.row.is_attack and one.matched]
    benign = [one for one in judged if not one.row.is_attack]
    return Robustness(
        disguises={
            name: share_of(gate.refuses(disguise(one.row.text)) for one in track(caught, f"disguise: {name}"))
            for name, disguise in DISGUISES.items()
        },
        forms={
            name: share_of(
                gate.refuses(form(one.row.text)) == bool(one.matched) for one in track(benign, f"form: {name}")
            )
            for name, form in FORMS.items()
        },
    )
