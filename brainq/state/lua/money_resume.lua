--[[
Have the turns that are parked in a line looked at now, in the order of the line: a budget was raised. They stay in it until the
sweeper has taken them out.

KEYS   parked_line index
ARGV   prefix most:n
REPLY  OK resumed:n
]]
-- @include lib/now
local members = redis.call('ZRANGE', parked_line, 0, most - 1)
for place, member in ipairs(members) do
  local sid, tid = member:match('^(%S+) (%S+)$')
  local turn_key = prefix .. '{' .. sid .. '}:t:' .. tid
  local t = redis.call('HMGET', turn_key, 'line', 'resumes_at')
  if not t[1] then
    redis.call('ZREM', parked_line, member)
  elseif tonumber(t[2]) > now then
    redis.call('HSET', turn_key, 'resumes_at', now)
    redis.call('ZADD', index, 'LT', now + place, member)
  end
end
return {'OK', #members}
