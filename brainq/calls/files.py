"""Files that a tool returned: kept in SQL before the call is settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from brainq.contracts.claim import CallClaim
from brainq.contracts.file import MOST_FILE_BYTES, File, FileLimits
from brainq.contracts.outcome import ToolSuccess
from brainq.observe.logs import logger
from brainq.ports.blobs import Blobs
from brainq.tools.with_files import WithFiles

log = logger("brainq.calls")


def parted(returned: Any) -> tuple[Any, tuple[File, ...]]:
    """The value that a function returned, and the files beside it. Raises ValueError."""
    match returned:
        case File():
            value, files = returned.attachment.label, (returned,)
        case WithFiles():
            value, files = returned.value, tuple(cast("Sequence[object]", returned.files))
        case _:
            return returned, ()
    kept = tuple(file for file in files if isinstance(file, File))
    if len(kept) < len(files):
        raise ValueError("it returned, but WithFiles takes a list of File; make each with File.of or File")
    size = sum(len(file.data) for file in kept)
    if size > MOST_FILE_BYTES:
        raise ValueError(
            f"it returned, but its files have {size:,} bytes; return at most {MOST_FILE_BYTES:,}"
        )
    return value, kept


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """Keeps the files of results. Doing it again is harmless: bytes are kept once."""

    blobs: Blobs
    limits: FileLimits

    def kept(self, claim: CallClaim, outcome: ToolSuccess, files: Sequence[File]) -> ToolSuccess:
        """The outcome with its files, or with the reason why they are missing: what was done is done.

        Raises what SQL raises where nothing was changed: the call is run again.
        """
        if not files:
            return outcome
        why = self.limits.why_not(files)
        if not why:
            try:
                self.blobs.keep(claim.session_id, claim.turn_id, files)
            except Exception as failure:
                if claim.effect.is_read:
                    raise
                log.error(
                    "files of a result not kept",
                    failure=failure,
                    turn_id=claim.turn_id,
                    call_id=claim.call_id,
                )
                why = "SQL could not be reached"
        if why:
            return outcome.model_copy(update={"files_lost": why})
        return outcome.model_copy(update={"attachments": tuple(file.attachment for file in files)})
