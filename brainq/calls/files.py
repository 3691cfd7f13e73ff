"""Files that a tool returned: kept in SQL before the call is settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brainq.contracts.claim import CallClaim
from brainq.contracts.file import File, FileLimits
from brainq.contracts.outcome import ToolSuccess
from brainq.observe.logs import logger
from brainq.ports.blobs import Blobs

log = logger("brainq.calls")


@dataclass(frozen=True, slots=True)
class ResultFiles:
    """Keeps the files of results. Doing it again is harmless: bytes are kept once."""

    blobs: Blobs
    limits: FileLimits

    def kept(self, claim: CallClaim, outcome: ToolSuccess, files: Sequence[File]) -> ToolSuccess:
        """The outcome with its files, or with the reason why they are missing: what was done is done.

        Raises what SQL raises where nothing was changed: the call is run again.
        """
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
