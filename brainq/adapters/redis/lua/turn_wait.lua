--[[
Release a turn that waits for its place among a model's requests, so that no thread waits with it. Nothing was requested
from that model, so only `lost`, the cost of requests to other models before, is charged; a call beside the steps begins
again. The sweeper rings in `after_ms`. `why` is published. Until then its capacity is free for others, whose model may
have no limit; afterwards it continues without queueing for capacity, like a turn that was parked. Its deadline does not
run until it is claimed again (turn_claim); for a turn without a reply the deadline starts there. `queue_position` is
its queue and ticket. `stop` is the field of the stop that it waits for, or empty; the turn continues once that stop is
lifted.

KEYS   turn budget events spends
ARGV   sid tid owner fence:n after_ms:n wait_ms:n why queue_position lost stop
REPLY  WAITS | LOST
]]
-- @include lib/event
-- @include lib/owner_fence
-- @include lib/index
-- @include lib/admit_turns
-- @include lib/budget
-- @include lib/stops
-- @include lib/money
local t = read(turn, {'state', 'owner', 'fence', 'aux_open', 'step', 'brain', 'money'})
if not is_owner(t, owner, fence) then return {'LOST'} end
charge_spends(budget, spends, lost)
if t.money then settle_money(turn, t.money, charged_usd) end
if t.aux_open and t.aux_open ~= '' then redis.call('HDEL', turn, 'aux_' .. t.aux_open) end
if stop ~= '' then
  if is_over_for(stop) then after_ms = 0 end -- it was lifted in the meantime
  redis.call('HSET', turn, 'stop', stop)
end
redis.call('HSET', turn, 'owner', '', 'thinking', '0', 'aux_open', '', 'rung_at', now, 'resumes_at', now + after_ms,
  'resumes_ms', after_ms, 'waits_for', why, 'stands', queue_position)
if t.step == '0' then
  redis.call('HSET', budget, 'deadline', now + after_ms + tonumber(redis.call('HGET', budget, 'timeout_ms')))
else
  redis.call('HINCRBY', budget, 'deadline', after_ms)
end
emit(events, 'notice', {waits_for = why, wait_ms = wait_ms})
look_within(sid, tid, stop == '' and after_ms or math.min(after_ms, RERING_MS))
if remove_live(sid, tid, t.brain) then admit_turns(sid) end
return {'WAITS'}
