"""Whatever the client can do, the terminal can do."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import typer

import brainq.cli
from brainq.cli.main import app
from brainq.client.client import Client
from brainq.client.handle import Hold, TurnHandle
from brainq.client.memories import Memories
from brainq.client.session import Flag, Session

# Verb of the client -> command, or the reason why it has none of its own.
NONE = "none: "
VERBS: dict[str, str] = {
    "Client.submit": "submit",
    "Client.run": "submit",
    "Client.handle": NONE + "commands take a turn's id",
    "Client.find": NONE + "commands find the turn that an argument means by it",
    "Client.session": "session",
    "Client.brains": "brains",
    "Client.approvals": "approvals",
    "Client.turns": "list",
    "Client.sessions": "sessions",
    "Client.iterate_turns": "list",
    "Client.iterate_sessions": "sessions",
    "Client.iterate_approvals": "approvals",
    "Client.fleet": "fleet",
    "Client.activity": NONE + "it is drawn by the page; `metrics` has the figures",
    "Client.scale": "scale",
    "Client.metrics": "metrics",
    "Client.approval": NONE + "`approvals --json` and `show` have each one whole",
    "Client.approve": "approve",
    "Client.deny": "deny",
    "Client.edit": "approve",
    "Client.complete_call": "complete",
    "Client.fail_call": "fail",
    "Client.cancel": "cancel",
    "Client.state": NONE + "`show` has it, for people and as JSON",
    "Client.deliveries": "webhook",
    "Client.send_again": "webhook",
    "Client.begin_try": NONE
    + "for fronts whose clients say by their retries what is one request; `submit --request-key` names it",
    "Client.end_try": NONE + "as begin_try",
    "Client.schedule": "schedule",
    "Client.schedules": "schedule",
    "Client.find_schedule": "schedule",
    "Client.pause_schedule": "schedule",
    "Client.resume_schedule": "schedule",
    "Client.remove_schedule": "schedule",
    "Client.cells": "cells",
    "Client.stop": "stop",
    "Client.lift": "lift",
    "Client.stops": "stops",
    "Client.versions": "versions",
    "Client.ramp_build": "versions",
    "Client.release_build": "versions",
    "Client.audit": "audit",
    "Client.bulk": "bulk",
    "Client.start_bulk": NONE + "a command does it to its end",
    "Client.bulk_report": NONE + "`bulk` prints its report; HTTP and clients follow one that goes on",
    "Client.stop_bulk": NONE + "Ctrl+C stops a `bulk`",
    "Client.memories": "memory",
    "Memories.list": "memory",
    "Memories.forget": "memory",
    "Memories.forget_all": "memory",
    "Client.budgets": "budgets",
    "Client.spend": "spend",
    "Client.ping": "doctor",
    "Client.close": NONE + "a command ends",
    "TurnHandle.result": "submit",
    "TurnHandle.text": "tail",
    "TurnHandle.wait": NONE + "`submit` follows a turn to its end, and `approvals` has what it waits for",
    "TurnHandle.events": "tail",
    "TurnHandle.request": "show",
    "TurnHandle.snapshot": "show",
    "TurnHandle.events_so_far": "tail",
    "TurnHandle.explain": "show",
    "TurnHandle.transcript": "show",
    "TurnHandle.calls": "show",
    "TurnHandle.file": "show",
    "TurnHandle.give_result": NONE + "whoever runs tools of its own is a program, and has a client or HTTP",
    "TurnHandle.give_error": NONE + "as give_result",
    "TurnHandle.cancel": "cancel",
    "TurnHandle.delete_response": NONE
    + "for HTTP APIs whose callers delete responses; `cancel` and `prune` are its own",
    "TurnHandle.is_response_deleted": NONE + "as delete_response",
    "TurnHandle.steer": "steer",
    "TurnHandle.receipt": "show",
    "TurnHandle.hold": "hold",
    "TurnHandle.holds": "show",
    "TurnHandle.release": "release",
    "TurnHandle.approvals": "show",
    "TurnHandle.timeline": "show",
    "TurnHandle.children": "show",
    "Session.submit": "submit",
    "TurnHandle.decision": "show",
    "Session.live": "session",
    "Session.history": "history",
    "Session.waiting": "session",
    "Session.drop": "drop",
    "Session.pause": "pause",
    "Session.resume": "resume",
    "Session.is_paused": "session",
    "Session.why_paused": "session",
    "Session.readiness": NONE + "a flag is of the process that gets ready; `submit --not-ready` holds one turn",
    "Session.flag": "ready",
    "Session.unread_flags": "session",
    "Session.steer": "submit",
    "Session.interrupt": "interrupt",
    "Session.compact": "compact",
    "Flag.release": "ready",
    "Flag.ready": "ready",
    "Hold.release": "release",
}


def public(kind: type) -> set[str]:
    return {f"{kind.__name__}.{name}" for name in dir(kind) if not name.startswith("_")}


def test_every_verb_of_the_client_has_a_command_or_a_reason() -> None:
    verbs = set[str]().union(*map(public, (Client, TurnHandle, Session, Flag, Hold, Memories)))
    assert verbs == set(VERBS)
    main: Any = typer.main.get_command(app)
    commands = {said for said in VERBS.values() if not said.startswith(NONE)}
    assert commands <= set(main.commands)


def test_commands_reach_nothing_behind_the_client_and_the_operator() -> None:
    reached = [
        f"{path.name}:{node.lineno}"
        for path in Path(brainq.cli.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and (node.attr == "wiring" or node.attr.startswith("_client"))
    ]
    assert reached == []


def test_the_shell_completes_commands() -> None:
    # As the script of --install-completion calls it.
    asked = {"_BRAINQ_COMPLETE": "complete_bash", "COMP_WORDS": "brainq hist", "COMP_CWORD": "1"}
    program = [sys.executable, "-c", "import sys; sys.argv = ['brainq']; from brainq.cli.main import main; main()"]
    done = subprocess.run(program, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["history"]
