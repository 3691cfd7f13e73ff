"""A file as a browser may have it: what anybody sent must never run on the gateway's own address."""

from __future__ import annotations

from urllib.parse import quote

from starlette.responses import Response

from brainq.contracts.file import File

SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What a browser shows in place; anything else is saved. SVG is not among them: it may hold scripts."""


def file_answer(file: File) -> Response:
    kind = "inline" if file.media_type in SHOWN else "attachment"
    name = quote(file.name or file.attachment.sha256[:12], safe="")
    headers = {
        "Content-Disposition": f"{kind}; filename*=UTF-8''{name}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        # The bytes of a hash never change; whether the turn still has them may.
        "Cache-Control": "private, max-age=300",
    }
    return Response(file.data, headers=headers, media_type=file.media_type)
