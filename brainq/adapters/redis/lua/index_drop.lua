--[[
Remove a turn from the index if Redis does not know it and nobody waits for its end.

KEYS   turn
ARGV   sid tid
REPLY  DROPPED | KNOWN
]]
-- @include lib/index
if redis.call('EXISTS', turn) == 1 then return {'KNOWN'} end
look_no_more(sid, tid)
return {'DROPPED'}
