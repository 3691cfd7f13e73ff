"""`brainq brains`: the brains of the deployment."""

from __future__ import annotations

from brainq.cli.options import App, AsJson


def brains(as_json: AsJson = False, app: App = "") -> None:
    """List the brains, with their models and tools. The first has the turns that name none.

    They are what BRAINQ_APP, or -A, names: one Brain, or a list, tuple or mapping of several. --json also says what
    each tool is for.

    \b
    Examples:
      brainq brains
      brainq -A shop.agents:brains brains
      brainq submit s1 "Where is my parcel?" --brain support
    """
    from brainq.brain_loading import load_brains
    from brainq.brains_seen import brains_seen
    from brainq.cli.brain_rows import as_table
    from brainq.cli.output import print_json, stdout
    from brainq.settings import load_settings

    found = brains_seen(load_brains(load_settings().app))
    if as_json:
        print_json([brain.model_dump(mode="json") for brain in found])
    else:
        stdout().print(as_table(found))
