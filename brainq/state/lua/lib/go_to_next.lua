-- The session is done with its live turn: its next one begins, or stands in line for room behind those that wait for it
-- already; a child turn asks for none. Uses the names of turn_end.
-- @include lib/fill
local function go_to_next(is_paused)
  local others_wait = leave_room(sid, tid)
  local next_turn = not is_paused and redis.call('LINDEX', waiting, 0)
  local key = next_turn and base .. next_turn
  if next_turn and ((not others_wait and not no_room(tenant_of(sid))) or redis.call('HGET', key, 'parent') ~= '') then
    redis.call('LPOP', waiting)
    activate(session, key, key .. ':budget', key .. ':events', flags, readiness, sid, next_turn)
    if others_wait then fill_room(sid) end
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
  if next_turn then stand_in_line(sid) end
  if others_wait or next_turn then fill_room(sid) end
  return ''
end
