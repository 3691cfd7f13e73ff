--[[
Say that a readiness flag is ready. TAKEN: a turn has taken it as a hold, which is to be released there.

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
