--[[
Record that a finalizer step failed and must be tried again after `retry_ms`, when the sweeper rings for it.

KEYS   turn
ARGV   sid tid fence:n retry_ms:n failure
REPLY  WAIT | LOST
]]
-- @include lib/index
-- @include lib/chain
local t = read(turn, {'fin_fence', 'fin_owner', 'fin_failing_since', 'fin_lost'})
if not holds_step(t, fence) then return {'LOST'} end
redis.call('HSET', turn, 'fin_owner', '', 'fin_retry_at', now + retry_ms, 'fin_retry_ms', retry_ms,
  'fin_error', failure, 'fin_lost', math.max(0, (t.fin_lost or 1) - 1))
if not t.fin_failing_since or t.fin_failing_since == '0' then redis.call('HSET', turn, 'fin_failing_since', now) end
-- Even during a long wait, the sweeper may have to send the result.
look_within(sid, tid, math.min(retry_ms, SOON_MS) + 1)
return {'WAIT'}
