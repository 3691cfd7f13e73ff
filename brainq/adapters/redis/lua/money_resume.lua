--[[
Have the turns that are parked in a line looked at now, in the order of the line: a budget was raised. They stay in it until the
sweeper has taken them out. So do those that are hidden while their tenant moves: they ask once they are shown again.

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
