--[[
Take the finalizer step that is next, if it is the one the doorbell names and nobody holds it. `lost`: how many workers
took it before and told no end of it.

KEYS   turn
ARGV   owner step lease_ms:n
REPLY  GO fence:n tries:n revision:n sent:b lost:n | DROP why:gone/stale/held/later
]]
-- @include lib/now
-- @include lib/fields
-- @include lib/ring
local t = read(turn, {'fin_step', 'fin_owner', 'fin_lease', 'fin_fence', 'fin_tries', 'fin_rung', 'fin_retry_at', 'revision',
  'result_at', 'fin_lost'})
if not t.fin_step then return {'DROP', 'gone'} end
if t.fin_step ~= step then return {'DROP', 'stale'} end
if t.fin_owner ~= '' and tonumber(t.fin_lease or 0) > now then return {'DROP', 'held'} end
if tonumber(t.fin_retry_at or 0) > now then return {'DROP', 'later'} end
mark_claimed(t.result_at and 'finalize_later' or 'finalize', t.fin_rung)
local fence, tries, lost = t.fin_fence + 1, t.fin_tries + 1, tonumber(t.fin_lost or 0)
redis.call('HSET', turn, 'fin_fence', fence, 'fin_tries', tries, 'fin_owner', owner, 'fin_lease', now + lease_ms,
  'fin_lost', lost + 1)  -- until this one tells its end
return {'GO', fence, tries, t.revision or '0', t.result_at and '1' or '0', lost}
