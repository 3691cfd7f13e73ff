"""What is left of a turn of a session whose history Redis has let go."""

from __future__ import annotations

from typing import NamedTuple

from brainq.contracts.attachment import Attachment


class EarlierTurn(NamedTuple):
    """What the user said, with which files, and what was answered."""

    user: str
    assistant: str
    attachments: tuple[Attachment, ...] = ()
