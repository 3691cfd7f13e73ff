--[[
Steps behind the chain's own go ahead of it: it is to be tried again, and they do not need it. `ahead` is the step that goes
next ('' ends the round: the chain's own waits for its time), `past` what went ahead so far. `retry_ms` is given by who
held the chain's own step: when that is due again, and `failure` why; -1 by who held one that went ahead. `uncounted`: the
try that was claimed was none. The owner takes `ahead` at once as by finalize_settle, or it is rung for.

KEYS   turn
ARGV   sid tid fence:n step ahead past retry_ms:n failure uncounted:n owner lease_ms:n
REPLY  GO fence:n revision:n sent:b failing | NEXT | WAIT | LOST
]]
-- @include lib/index
-- @include lib/chain
-- @include lib/final_queue
local t = read(turn, {'fin_fence', 'fin_owner', 'fin_step', 'result_at', 'revision', 'fin_lost', 'fin_tries', 'fin_failing_since', 'fin_error',
  'fin_retry_at', 'fin_ahead', 'fin_ahead_of'})
local function go()
  return {'GO', fence + 1, t.revision or '0', t.result_at and '1' or '0',
    (t.fin_failing_since or '0') ~= '0' and t.fin_error or ''}
end
if has_gone_on(t, fence, owner) and t.fin_ahead_of == step and t.fin_ahead == ahead then return go() end
if not holds_step(t, fence) or t.fin_step ~= step then return {'LOST'} end
local due = tonumber(t.fin_retry_at or 0)
if retry_ms >= 0 then
  due = now + retry_ms
  redis.call('HSET', turn, 'fin_retry_at', due, 'fin_retry_ms', retry_ms, 'fin_tries', t.fin_tries - uncounted,
    'fin_lost', math.max(0, (t.fin_lost or 1) - 1))
  if failure ~= '' then
    t.fin_error = failure
    if (t.fin_failing_since or '0') == '0' then t.fin_failing_since = now end
    redis.call('HSET', turn, 'fin_error', failure, 'fin_failing_since', t.fin_failing_since)
  end
end
redis.call('HSET', turn, 'fin_ahead', ahead, 'fin_ahead_of', step, 'fin_past', past, 'fin_owner', '', 'fin_ahead_lost', 0)
if ahead == '' then
  redis.call('HSET', turn, 'fin_retry_at', math.max(due, now + 1))  -- later than the last bell: it is rung for
  look_within(sid, tid, math.max(1, math.min(due - now, SOON_MS) + 1))
  return {'WAIT'}
end
if owner ~= '' and (not t.result_at or nobody_waits('finalize')) then
  redis.call('HSET', turn, 'fin_owner', owner, 'fin_fence', fence + 1, 'fin_lease', now + lease_ms, 'fin_rung', now,
    'fin_ahead_lost', 1)
  return go()
end
local place = t.result_at and 'finalize_later' or place_for_final()
redis.call('HSET', turn, note_bell(place))
ring_final(place, sid, tid, step, ahead, fence)
return {'NEXT'}
