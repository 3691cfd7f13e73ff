--[[
Mark a readiness flag as ready. TAKEN means that a turn has taken the flag as a hold, which must be released there.

KEYS   flags
ARGV   flag
REPLY  READY | TAKEN turn | GONE
]]
local text = redis.call('HGET', flags, flag)
if not text then return {'GONE'} end
local known = cjson.decode(text)
if known.turn then return {'TAKEN', known.turn} end
if not known.ready then
  known.ready = true
  redis.call('HSET', flags, flag, cjson.encode(known))
end
return {'READY'}
