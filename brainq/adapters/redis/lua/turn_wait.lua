--[[
Let a turn go that waits for its place among a model's requests: nobody's thread waits with it. Nothing was asked of
that model, so nothing is charged but `lost`, what others were asked before; a call beside the steps is begun again. The sweeper rings in `after_ms`; `why` is published. Its
capacity is another's until then, whose model may have no limit; it goes on without asking for it, as one that was parked.
Its deadline does not run until it is claimed then (turn_claim); of a turn without a reply it begins there. `queue_position` is its queue and ticket.
`stop` is the field of what operators have stopped and it waits for, or empty: it goes on once that is lifted.

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
  if is_over_for(stop) then after_ms = 0 end -- it was lifted meanwhile
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
