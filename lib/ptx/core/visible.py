"""Text of somebody else's, as a terminal may be sent it."""

from __future__ import annotations

import re

# All but tabs and line ends: what moves the cursor, changes colours or titles, or turns letters
# round (Unicode's explicit bidirectional formatting).
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """The text with its control characters written out, such as ``\\x1b``."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
