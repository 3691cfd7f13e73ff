"""Every background thread, loop and timer of brainq, and where tests make it fail."""

from __future__ import annotations

IN_THE_FLEET = (
    "brainq-announcer",
    "brainq-beats",
    "brainq-callbacks",
    "brainq-fitness",
    "brainq-looks",
    "brainq-stops",
    "brainq-sweeper",
    "brainq-tool-loop",
    "brainq-watchdog",
    "brainq-webhooks",
)
"""What every fleet has: made to fail in a running one."""

BY_ITSELF = {
    "brainq-abandoned": "tests/unit/runtime/observe/test_threads.py",
    "brainq-answer": "tests/unit/runtime/observe/test_threads.py",
    "brainq-bulk-run": "tests/unit/client/test_bulk_threads.py",
    "brainq-bulk-saver": "tests/unit/client/test_bulk_threads.py",
    "brainq-call": "tests/unit/runtime/observe/test_threads.py",
    "brainq-cell-{}": "tests/unit/runtime/observe/test_threads.py",
    "brainq-cut": "tests/unit/engine/calls/test_watchdog.py",
    "brainq-end": "tests/unit/runtime/observe/test_threads.py",
    "brainq-failovers": "tests/integration/people/test_stops.py",
    "brainq-kill": "tests/integration/testing/test_runs.py",
    "brainq-leases": "tests/unit/engine/upkeep/test_poller.py",
    "brainq-look-{}": "tests/unit/runtime/observe/test_threads.py",
    "brainq-mcp": "tests/contrib/mcp_server/test_mcp.py",
    "brainq-mcp-cancel": "tests/unit/runtime/observe/test_threads.py",
    "brainq-metrics": "tests/unit/runtime/observe/test_threads.py",
    "brainq-metrics-page": "tests/unit/runtime/observe/test_threads.py",
    "brainq-models": "tests/unit/runtime/processes/test_loop_thread.py",
    "brainq-move": "tests/unit/runtime/observe/test_threads.py",
    "brainq-owner": "tests/unit/runtime/observe/test_threads.py",
    "brainq-pool-{}": "tests/unit/app/local/test_pool_loop.py",
    "brainq-quarantine": "tests/unit/runtime/processes/test_lost_answers.py",
    "brainq-reload": "tests/unit/runtime/observe/test_threads.py",
    "brainq-renewal": "tests/unit/runtime/observe/test_threads.py",
    "brainq-requests": "tests/unit/runtime/processes/test_lost_answers.py",
    "brainq-shares": "tests/unit/engine/upkeep/test_poller.py",
    "brainq-slot": "tests/unit/runtime/observe/test_threads.py",
    "brainq-streams": "tests/integration/records/test_stream_reader.py",
    "brainq-telemetry-stop": "tests/unit/runtime/observe/test_threads.py",
    "brainq-timers": "tests/unit/engine/models/test_stall_clock.py",
    "brainq-webhook": "tests/integration/webhooks/test_sending.py",
    "brainq-webhook-name": "tests/unit/runtime/observe/test_threads.py",
    "brainq-within": "tests/unit/runtime/processes/test_loop_thread.py",
}
"""What is there in some processes only: the file whose tests make it, or one of its kind, fail."""
