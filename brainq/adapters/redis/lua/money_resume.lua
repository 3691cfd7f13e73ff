--[[
Schedule the turns that are parked in a queue of a raised budget for a check now, in the order of the queue. They stay
in the queue until the sweeper has removed them. So do turns that are hidden while their tenant moves: they continue
once they are shown again.

KEYS   parked_line index
ARGV   prefix most:n
REPLY  OK resumed:n
]]
-- @include lib/now
local members = redis.call('ZRANGE', parked_line, 0, most - 1)
for place, member in ipairs(members) do
  local sid, tid = member:match('^(%S+) (%S+)$')
  local root = prefix .. '{' .. sid .. '}:'
  local turn_key = root .. 't:' .. tid
  local t = redis.call('HMGET', turn_key, 'line', 'resumes_at')
  if not t[1] then
    if redis.call('EXISTS', root .. 'moving:t:' .. tid) == 0 then redis.call('ZREM', parked_line, member) end
  elseif tonumber(t[2]) > now then
    redis.call('HSET', turn_key, 'resumes_at', now)
    redis.call('ZADD', index, 'LT', now + place, member)
  end
end
return {'OK', #members}
