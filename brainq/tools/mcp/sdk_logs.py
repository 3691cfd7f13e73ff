"""What the SDK logs of messages holds their content: it is kept out. Our own lines say what happened."""

from __future__ import annotations

import logging
from pathlib import Path

import mcp


class _NotOfTheSdk(logging.Filter):
    """Its sessions log under a name that others may have, too."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not record.pathname.startswith(_SDK)


_SDK = str(Path(mcp.__file__).parent)
_filter = _NotOfTheSdk()


def keep_sdk_quiet() -> None:
    """Doing it again changes nothing."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    logging.getLogger("client").addFilter(_filter)
