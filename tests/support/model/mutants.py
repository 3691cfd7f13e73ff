"""Scripts without one of their guards. A model test that does not find them would find nothing."""

from __future__ import annotations

# Name of the mutant -> script, text, and what stands in its place.
MUTANTS: dict[str, tuple[str, str, str]] = {
    "step_commit without its fence": (
        "step_commit",
        "if not is_owner(t, owner, fence) or tonumber(t.step) ~= step - 1 then",
        "if false then",
    ),
    "call_settle whatever the status": (
        "call_settle",
        "if c.status == 'running' and is_open(t) then",
        "if is_open(t) then",
    ),
    "call_settle counts a cut as an end": (
        "call_settle",
        "c.status ~= 'running' and not is_cut",
        "c.status ~= 'running'",
    ),
    "step_commit grants any lane": ("step_commit", "if not is_first(holder, lanes) then", "if false then"),
    "call_settle leaves no line": ("call_settle", "redis.call('LREM', LANE_QUEUE .. lane, 0, holder)", ""),
    "call_settle sends nobody on": ("call_settle", "granted[#granted + 1] = first", ""),
    "turn_end without its fence": ("turn_end", "if not is_owner(t, owner, fence) then", "if false then"),
    "turn_end forgets the next turn": (
        "turn_end",
        "redis.call('LINDEX', waiting, 0)\n  local key",
        "false\n  local key",
    ),
    "call_claim takes what runs already": ("call_claim", "if c.status ~= 'dispatched' then", "if not c.status then"),
    "step_begin pays each time": ("step_begin", "id ~= '' and (held[i + 2] or is_paid[id])", "false"),
    "finalize_settle without its fence": (
        "finalize_settle",
        "if not holds_step(t, fence) or t.fin_step ~= step then",
        "if false then",
    ),
    "finalize_send without its fence": (
        "finalize_send",
        "if not holds_step(t, fence) or t.fin_step ~= step then",
        "if false then",
    ),
    "result_publish twice": ("result_publish", "if t.state ~= 'closing' then", "if false then"),
    "finalize_send publishes twice": ("finalize_send", "if t.state == 'closing' then", "if true then"),
    "turn_sweep asks for a bell in the list that the result would choose": (
        "turn_sweep",
        "if place and rung_at == t.fin_rung then return place, tonumber(since), again end",
        "",
    ),
    "finalize_claim makes no room in the finalizer's list": (
        "finalize_claim",
        "local reply = claim()\nfill_finals()",
        "local reply = claim()",
    ),
    "turn_end rings however long the finalizer's list is": ("turn_end", "length < places_of(list) and", ""),
    "step_commit rings however long a list of calls is": ("step_commit", "length < places_of(list) and", ""),
    "call_claim makes no room in the list of calls": (
        "call_claim",
        "local reply = claim()\nfill_calls(c.effect or serves)",
        "local reply = claim()",
    ),
    "turn_sweep rings no one": (
        "turn_sweep",
        "bell_is_gone('turns', t.passed, t.rung_at, rering_ms)",
        "false",
    ),
    "turn_sweep rescues no one": ("turn_sweep", "if c.lease <= now then actions", "if false then actions"),
    "call_settle puts the opening wave into the history": ("call_settle", "    if step > 0 then", "    if true then"),
    "aux_commit without its fence": ("aux_commit", "if not is_owner(t, owner, fence) then", "if false then"),
    "settles count no call twice": ("call_settle", "if left <= 0 or", "if left < 0 or"),
    "turn_end seals no mailbox": (
        "turn_end",
        "local bounced = bounce_inputs(inputs, events, mailbox, receipts)",
        "local bounced = {}",
    ),
    "step_begin drains nothing": ("step_begin", "redis.call('LPOP', mailbox)", "redis.call('LINDEX', mailbox, i - 1)"),
    "call_claim looks at no hold": (
        "call_claim",
        "if c.effect ~= 'read_only' and hold_word(t.holds) then",
        "if false then",
    ),
    "approval_decide for any arguments": ("approval_decide", "if c.hash ~= expect then", "if false then"),
    "approval_decide twice": ("approval_decide", "if c.ask ~= 'pending' then", "if false then"),
    "a parked turn's deadline runs on": (
        "outside_complete",
        "  redis.call('HINCRBY', budget_key, 'deadline', parked_ms)",
        "",
    ),
    "outside_complete twice": ("outside_complete", "if c.completed_by then", "if false then"),
    "a call of a cancelled turn opens waves": (
        "call_settle",
        "'waves', 'cancel', 'state', 'fence'",
        "'waves', 'nothing', 'state', 'fence'",
    ),
    "turn_submit begins a turn of a paused session": (
        "turn_submit",
        "if not live and s.paused ~= '1' then",
        "if not live then",
    ),
    "turn_end hands its room to nobody": ("turn_end", "if others_wait or next_turn then admit_turns(sid) end", ""),
    "turn_end lets a tenant begin again at once": (
        "turn_end",
        "redis.call('ZADD', QUEUED_TENANTS, behind(QUEUED_TENANTS), tenant)\n    end\n    return chosen",
        "\n    end\n    return chosen",
    ),
    "a turn that parks keeps its room": (
        "step_commit",
        "if remove_live(sid, tid, brain) then admit_turns(sid) end",
        "",
    ),
    "a turn that waits for its model keeps its room": (
        "turn_wait",
        "if remove_live(sid, tid, t.brain) then admit_turns(sid) end",
        "",
    ),
    "a turn that goes on is not in the room": ("outside_complete", "add_live(t.sid, t.tid, t.brain)", ""),
    "turn_submit asks for no room": ("turn_submit", "return 'full'", "return nil"),
    "turn_submit asks for no share": (
        "turn_submit",
        "return not has_share_left(tenant) and 'tenant' or nil, caps",
        "return nil, caps",
    ),
    "turn_end counts nobody whom it lets in": ("turn_end", "capacity_now.live = capacity_now.live + 1", ""),
    "turn_submit asks for no room of its brain": ("turn_submit", "capacity_of_brain(brain) <= 0", "false"),
    "turn_end asks for no room of the next turn's brain": ("turn_end", "and not brain_is_full(t.brain)", ""),
    "turn_end keeps its brain's place": (
        "turn_end",
        "redis.call('ZREM', LIVE_TURNS, live_members(sid, tid, brain))",
        "redis.call('ZREM', LIVE_TURNS, live_member(sid, tid))",
    ),
    "turn_end calls nobody back who stands aside": (
        "turn_end",
        "recall_deferred(caps_now(), full_tenants, n_full)\n      tenant",
        "tenant",
    ),
    "turn_end counts who has begun as one that waits for its brain still": (
        "turn_end",
        "if caps then stop_waiting(chosen) end",
        "",
    ),
    "turn_submit begins a turn before the one that its session stands aside with": (
        "turn_submit",
        "or caps and not is_ended",
        "",
    ),
    "turn_cancel leaves the next turn of its session waiting": (
        "turn_cancel",
        "enqueue_session(sid, caps_now())\n    admit_turns(sid)",
        "",
    ),
    "turn_waited leaves the next turn of its session waiting": (
        "turn_waited",
        "enqueue_session(sid, caps_now())\n    admit_turns(sid)",
        "",
    ),
    "turn_waited ends who has begun": ("turn_waited", "if t.state ~= 'queued' or", "if"),
    "turn_end ends what a compaction has begun": (
        "turn_end",
        "stop_reason == 'answered' and item ~= ''",
        "stop_reason == 'answered'",
    ),
    "a thread continues with a call that nobody has claimed": (
        "step_commit",
        "  begin_attempt(call, attempt, c, visit.owner, visit.lease_ms)\n",
        "",
    ),
    "a thread continues though others wait longer": (
        "turn_end",
        "if free < 0 then return decline('waiting') end",
        "",
    ),
}
