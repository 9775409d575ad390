"""Text from strangers on a terminal: shown, never obeyed."""

from __future__ import annotations

import unicodedata

# Characters that turn the direction of what follows, so that it reads as something else.
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    r"""The text with whatever a terminal would act on written out, as ``\x1b``.

    A file's name may hold the codes that move the cursor, rename the window or type commands.
    Line breaks and tabs stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if _is_harmless(c) else _written_out(c) for c in text)


def _is_harmless(character: str) -> bool:
    if character in "\n\t":
        return True
    return unicodedata.category(character) not in ("Cc", "Cs") and character not in _TURNING


def _written_out(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
