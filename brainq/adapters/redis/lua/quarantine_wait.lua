--[[
Let a turn that may be killing its workers wait for a place in quarantine, without an owner. For `after_ms` nobody rings
for it, and its deadline does not run, for at most its own time limit in total. A further call before that time extends
the wait. The unused rest is taken back when the turn is claimed (turn_claim).

KEYS   turn budget
ARGV   sid tid fence:n after_ms:n
REPLY  WAITS | GONE
]]
-- @include lib/fields
-- @include lib/now
-- @include lib/index
-- @include lib/waits_for
local t = read(turn, {'state', 'fence', 'owner', 'lease_until', 'cancel', 'waits_for', 'resumes_at', 'quarantine_ms'})
if t.state ~= 'active' or tonumber(t.fence) ~= fence or t.cancel == '1' then return {'GONE'} end
if t.owner ~= '' and tonumber(t.lease_until or 0) > now then return {'GONE'} end
local b = read(budget, {'deadline', 'timeout_ms'})
if now >= tonumber(b.deadline) then return {'GONE'} end
local from = t.waits_for == QUARANTINE and math.max(now, tonumber(t.resumes_at or '') or 0) or now
local more, had = now + after_ms - from, tonumber(t.quarantine_ms or 0)
if had + more > tonumber(b.timeout_ms) then return {'WAITS'} end
redis.call('HSET', turn, 'waits_for', QUARANTINE, 'resumes_at', now + after_ms, 'resumes_ms', after_ms, 'quarantine_ms',
  had + more)
redis.call('HINCRBY', budget, 'deadline', more)
look_within(sid, tid, after_ms)
return {'WAITS'}
