--[[
Take the finalizer step that is next, if it is the one the doorbell names and nobody holds it. `lost`: how many workers
took it before and told no end of it.

KEYS   turn
ARGV   owner step lease_ms:n
REPLY  GO fence:n tries:n revision:n sent:b lost:n | DROP why:gone/stale/held/later
]]
-- @include lib/now
-- @include lib/ring
local held = redis.call('HMGET', turn, 'fin_step', 'fin_owner', 'fin_lease', 'fin_fence', 'fin_tries', 'fin_rung',
  'fin_retry_at', 'revision', 'result_at', 'fin_lost')
if not held[1] then return {'DROP', 'gone'} end
if held[1] ~= step then return {'DROP', 'stale'} end
if held[2] ~= '' and tonumber(held[3] or 0) > now then return {'DROP', 'held'} end
if tonumber(held[7] or 0) > now then return {'DROP', 'later'} end
mark_claimed(held[9] and 'finalize_later' or 'finalize', held[6])
local fence, tries, lost = held[4] + 1, held[5] + 1, tonumber(held[10] or 0)
redis.call('HSET', turn, 'fin_fence', fence, 'fin_tries', tries, 'fin_owner', owner, 'fin_lease', now + lease_ms,
  'fin_lost', lost + 1)  -- until this one tells its end
return {'GO', fence, tries, held[8] or '0', held[9] and '1' or '0', lost}
