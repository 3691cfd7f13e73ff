--[[
A turn that Redis does not know, and for whose end nobody waits, is looked at no more.

KEYS   turn
ARGV   sid tid
REPLY  DROPPED | KNOWN
]]
-- @include lib/index
if redis.call('EXISTS', turn) == 1 then return {'KNOWN'} end
look_no_more(sid, tid)
return {'DROPPED'}
