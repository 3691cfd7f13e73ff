"""Paths as git writes them in a diff."""

from __future__ import annotations

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
}
_ESCAPES["\r"] = "\\r"


def quoted_path(prefix: str, path: str) -> str:
    """`prefix` and `path`, in quotes with escapes where a character could be taken for something else.

    As git with core.quotePath off: letters of all languages stand as they are. The slashes at the beginning of
    an absolute path are left out, as patch would do.
    """
    name = prefix + path.lstrip("/")
    quoted = "".join(_escaped(character) for character in name)
    # git leaves a space bare; patch then finds no name in the header of an empty file, and git apply in some.
    return name if quoted == name and " " not in name else f'"{quoted}"'


def _escaped(character: str) -> str:
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    code = ord(character)
    if code < 0x20 or code == 0x7F:
        return f"\\{code:03o}"
    if 0xDC80 <= code <= 0xDCFF:  # how Python reads a byte of a file name that is no UTF-8
        return f"\\{code - 0xDC00:03o}"
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else character
