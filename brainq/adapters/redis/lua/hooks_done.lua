--[[
Record that the brain's `on_post_tool_use` was called for these calls, which no worker had ended.

KEYS   turn trace
ARGV   owner fence:n calls:words
REPLY  DONE | LOST
]]
-- @include lib/owner_fence
local t = read(turn, {'state', 'owner', 'fence', 'hooks_due'})
if not is_owner(t, owner, fence) then return {'LOST'} end
local done, left = {}, {}
for call in calls:gmatch('%S+') do done[call] = true end
for call in (t.hooks_due or ''):gmatch('%S+') do
  if done[call] then redis.call('HDEL', trace, call .. ':hook') else left[#left + 1] = call end
end
if #left > 0 then redis.call('HSET', turn, 'hooks_due', table.concat(left, ' ')) else redis.call('HDEL', turn, 'hooks_due') end
return {'DONE'}
