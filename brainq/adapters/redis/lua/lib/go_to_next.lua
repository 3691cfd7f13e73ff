-- End the live turn of a session. Its next turn begins, or queues for capacity behind the sessions that already wait. A
-- child turn needs only the capacity of its brain. Uses the names of turn_end.
-- @include lib/admit_turns

-- Return whether the session's next turn begins at once.
-- @lazy
local function begins(key, others_wait)
  local why, caps = 'others', false
  if not others_wait then why, caps = why_full(tenant_of(sid)) end
  if not why and not caps then return true end
  local t = read(key, {'parent', 'brain'})
  return (not why or t.parent ~= '') and not brain_is_full(t.brain)
end

local function go_to_next(is_paused, brain)
  local others_wait = remove_live(sid, tid, brain)
  local next_turn = not is_paused and redis.call('LINDEX', waiting, 0)
  local key = next_turn and base .. next_turn
  if next_turn and begins(key, others_wait) then
    redis.call('LPOP', waiting)
    activate(session, key, key .. ':budget', key .. ':events', flags, readiness, sid, next_turn)
    if others_wait then admit_turns(sid) end
    return next_turn
  end
  redis.call('HSET', session, 'live', '')
  redis.call('PEXPIRE', session_history, keep_session_ms)
  if not next_turn and not (is_paused and redis.call('EXISTS', waiting) == 1) then
    redis.call('PEXPIRE', session, keep_session_ms)
  end
  if redis.call('EXISTS', notices, flags, readiness) > 0 then
    for _, name in ipairs({notices, flags, readiness}) do redis.call('PEXPIRE', name, keep_session_ms) end
  end
  if next_turn then enqueue(sid) end
  if others_wait or next_turn then admit_turns(sid) end
  return ''
end
