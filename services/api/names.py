"""Names that callers give: of projects, sessions, entries and tags. What no text column holds is replaced in them."""

from typing import Annotated

from lorebus.contracts.memory import NAME_CHARS_MAX
from lorebus.contracts.objects import make_storable
from pydantic import AfterValidator, StringConstraints

Name = Annotated[str, StringConstraints(max_length=NAME_CHARS_MAX), AfterValidator(make_storable)]
"""Empty says the same as none."""
Id = Annotated[str, StringConstraints(min_length=1, max_length=NAME_CHARS_MAX), AfterValidator(make_storable)]
