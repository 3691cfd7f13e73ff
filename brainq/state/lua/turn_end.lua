--[[
End a turn, once, by its owner: its mailbox is sealed, calls still open get their message, the answer enters the
session's history, the write gate shuts, the session's next turn starts, the finalizer is rung.
MORE: input came while the last step was answered, and another step may read it; nothing has changed. CHANGED: there
are more than the `n_changes` changes that the diff was made of. `base` is the key prefix of the session's turns; the next
turn's keys are made from it, in the same slot. `outcome` is what the session keeps of a turn with a history of its own.

KEYS   session waiting turn budget trace history events guard notices spends mailbox receipts changes flags readiness
ARGV   base sid tid owner fence:n ending:Ending stop_reason:StopReason text failure item marker outcome
       open_status:TraceStatus open_text first_step tail last diff n_changes:n input:n output:n cache_read:n
       cache_creation:n cost:f? spend keep_session_ms:n
REPLY  ENDED next bounced:words children:words | MORE | CHANGED | LOST
]]
-- @include lib/holds
-- @include lib/budget
-- @include lib/activate
-- @include lib/finalize
-- @include lib/waves
-- @include lib/unconsumed
-- @include lib/bounce
if not holds(turn, owner, fence) then return {'LOST'} end
if redis.call('LLEN', changes) ~= n_changes then return {'CHANGED'} end
if stop_reason == 'answered' and item ~= '' and may_go_on() then return {'MORE'} end

if tail ~= '' then
  local at = redis.call('HMGET', turn, 'step', 'attempt')
  emit(turn, events, 'text.delta', {step = at[1] + 1, attempt = tonumber(at[2]), text = tail})
end
add_usage(budget, input, output, cache_read, cache_creation, cost)
if spend ~= '' then redis.call('RPUSH', spends, spend) end
if item ~= '' and ending == 'completed' then learn_ratio(session, turn, input) end
local children = close_calls()
if item ~= '' then redis.call('RPUSH', history, item) end
if marker ~= '' then redis.call('RPUSH', history, marker) end
local counted = isolated and turn or session
local length, trimmed = redis.call('LLEN', history), tonumber(redis.call('HGET', counted, 'trimmed')) or 0
redis.call('HSET', turn, 'end_at', length + trimmed)
if outcome ~= '' then redis.call('RPUSH', session_history, outcome) end
if not isolated and length > 2000 then
  redis.call('LTRIM', history, -2000, -1)
  redis.call('HSET', session, 'trimmed', trimmed + length - 2000)
end
-- A turn that only compacts begins nothing, and counts like any other.
if ending == 'completed' and redis.call('HEXISTS', turn, 'number') == 0 then
  redis.call('HSET', turn, 'number', redis.call('HINCRBY', session, 'turns', 1))
end
local bounced = bounce_all(turn, events, mailbox, receipts)
if last ~= '' then redis.call('HSET', turn, 'last_agent_message', last) end
if diff ~= '' then
  redis.call('HSET', turn, 'diff', diff)
  emit(turn, events, 'turn.diff', {diff = diff})
end
close_turn(turn, events, sid, tid, ending, stop_reason, text, failure, first_step)

local held = redis.call('HMGET', turn, 'flag')
if held[1] then redis.call('HDEL', flags, held[1]) end
local paused = redis.call('HGET', session, 'paused') == '1'
local next_turn = not paused and redis.call('LPOP', waiting)
if next_turn then
  local key = base .. next_turn
  activate(session, key, key .. ':budget', key .. ':events', flags, readiness, sid, next_turn)
else
  redis.call('HSET', session, 'live', '')
  local kept = {session_history, notices, flags, readiness}
  if not (paused and redis.call('EXISTS', waiting) == 1) then kept[#kept + 1] = session end
  for _, key in ipairs(kept) do redis.call('PEXPIRE', key, keep_session_ms) end
end
return {'ENDED', next_turn or '', table.concat(bounced, ' '), table.concat(children, ' ')}
