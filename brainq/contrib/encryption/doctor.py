"""The checks of `brainq doctor` for encrypted content."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from brainq.app.wiring.preflight import Check, fail, ok, warn
from brainq.contracts.encryption import ContentKeyMissing
from brainq.contrib.encryption.envelope import EnvelopeCodec
from brainq.errors import SetupError
from brainq.runtime.settings.deployment import Settings


def check_content_keys(settings: Settings) -> Iterator[Check]:
    """Check the content keys. It does not count rows; `brainq keys list --count` does."""
    place = settings.key_place
    if place is None:
        return
    try:
        codec = EnvelopeCodec(place)
        codec.check()
    except (ContentKeyMissing, SetupError) as error:
        yield fail(
            "keys",
            str(error),
            "its content cannot be read without the key; see docs/operate/encryption.md",
        )
        return
    rows = [key for key in codec.listed() if key.state != "shredded"]
    codec.close()
    others = {key.operator_key for key in rows} - {codec.operator_keys.current}
    mode = os.stat(place.file).st_mode
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield warn("keys", f"{place.file} can be read by users other than its owner", f"chmod 600 {place.file}")
    elif not codec.writes:
        yield warn("keys", "new content is stored unencrypted", "put a key before the line `clear` in the key file")
    elif others:
        wrapped = ", ".join(sorted(others))
        yield warn("keys", f"some tenants' keys are still encrypted with {wrapped}", "run `brainq keys rewrap`")
    else:
        yield ok("keys", f"content is encrypted; {codec.operator_keys.current} protects {len(rows)} tenants' keys")
