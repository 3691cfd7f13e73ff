--[[
Turns were looked at: each is looked at again in the ms given with it, or not again when that is -1. Only those that still have
the `mark` that index_take gave them: who had one looked at sooner meanwhile, or took it after that, is not overruled.

KEYS   index
ARGV   mark looked...
REPLY  OK
]]
-- @include lib/now
local members, again, over = {}, {}, {}
for i = 2, #ARGV, 2 do members[#members + 1] = ARGV[i] end
for i, score in ipairs(redis.call('ZMSCORE', index, unpack(members))) do
  local after_ms = tonumber(ARGV[2 * i + 1])
  if score == mark and after_ms < 0 then
    over[#over + 1] = members[i]
  elseif score == mark then
    again[#again + 1] = now + after_ms
    again[#again + 1] = members[i]
  end
end
if #again > 0 then redis.call('ZADD', index, unpack(again)) end
if #over > 0 then redis.call('ZREM', index, unpack(over)) end
return {'OK'}
