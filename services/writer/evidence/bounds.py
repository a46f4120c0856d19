"""Cutting a text to what is kept of it, with a note of how much is not."""

TEXT_CHARS_MAX = 4_000
"""Of one rejection, one log, the notes; and of all entries of one kind in a history or digest together."""


def keep_head(text: str, chars_max: int = TEXT_CHARS_MAX) -> str:
    omitted = len(text) - chars_max
    return text if omitted <= 0 else f"{text[:chars_max]}\n… [{omitted} characters omitted]"


def keep_tail(text: str, chars_max: int = TEXT_CHARS_MAX) -> str:
    omitted = len(text) - chars_max
    return text if omitted <= 0 else f"[{omitted} characters omitted] …\n{text[-chars_max:]}"
