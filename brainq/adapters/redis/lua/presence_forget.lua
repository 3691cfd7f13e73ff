--[[
Stop watching a process that was found gone, unless it was seen since then.

KEYS   presence
ARGV   process absent_at:n
REPLY  OK
]]
local noted = redis.call('HGET', presence, process)
if noted and noted:match(' (%d+)$') == string.format('%d', absent_at) then redis.call('HDEL', presence, process) end
return {'OK'}
