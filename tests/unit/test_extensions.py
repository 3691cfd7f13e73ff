"""Optional parts are found through entry points, and a wire that is off is not imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from brainq.errors import SetupError
from brainq.gateway.wire import GROUP
from brainq.runtime.settings.extensions import load_extension, load_extensions

OPENED_WITHOUT_A2A = """
import sys
from brainq import Brain, ScriptedProvider
from brainq.gateway.app import make_app
from brainq.gateway.edge.authentication import local_authenticator
from brainq.gateway.server import make_gateway
from brainq.runtime.settings.deployment import load_settings
app = make_app(make_gateway(load_settings(), Brain("b", ScriptedProvider(rules=[])), local_authenticator()))
print(sorted(app.state.wires), {"a2a", "google.protobuf", "mcp", "mcp_types"} & set(sys.modules))
"""


def test_metadata_that_is_older_than_the_code_is_refused_with_the_remedy() -> None:
    with pytest.raises(SetupError, match=r"lacks the entry points of 'brainq.none'.*pip install"):
        load_extensions("brainq.none")
    with pytest.raises(SetupError, match=r"lacks the entry point 'none' of 'brainq.wires'"):
        load_extension(GROUP, "none")


def test_each_wire_is_an_entry_point() -> None:
    assert set(load_extensions(GROUP)) == {"a2a", "ag_ui", "ai_sdk", "mcp_server"}


def test_a_wire_that_is_off_is_not_imported_and_neither_is_an_sdk_before_its_first_request() -> None:
    shown = subprocess.run([sys.executable, "-c", OPENED_WITHOUT_A2A], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "['ag_ui', 'ai_sdk', 'mcp_server'] set()"


def test_one_cell_imports_nothing_of_several() -> None:
    code = (
        "import sys\n"
        "from brainq import Brain, Client, ScriptedProvider\n"
        "from brainq.app.wiring import Wiring\n"
        "from brainq.runtime.settings.deployment import load_settings\n"
        "settings, brain = load_settings(redis_url='redis://x'), Brain('b', ScriptedProvider(rules=[]))\n"
        "Client(settings, brain)\n"
        "Wiring(settings, brain).tenants\n"
        "print([name for name in sys.modules if name.startswith('brainq.contrib.cells')])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_parts_of_several_cells_are_entry_points() -> None:
    assert set(load_extensions("brainq.cells")) == {"dev", "doctor", "gate", "mover", "router"}


def test_a_deployment_without_keys_imports_nothing_of_encryption(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from brainq.adapters.sql.store import Store\n"
        "from brainq.client.operator import Operator\n"
        f"Store.open('sqlite:///{tmp_path}/brainq.db').close()\n"
        "print([name for name in sys.modules if name.startswith(('brainq.contrib', 'cryptography.hazmat'))])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_parts_of_encryption_are_entry_points() -> None:
    assert set(load_extensions("brainq.encryption")) == {"blobs", "database", "doctor", "erase_keys", "keys", "new_key"}
