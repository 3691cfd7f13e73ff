--[[
Replace the oldest messages of the history by a summary. `drop` messages are removed, and `items` (the summary, and
messages that must stay) are put in front. CHANGED means that the length of the history is not what it was when the
summary was written. `mark` is the size of the context now: it is compacted again only after it has grown. `why` says
why no model wrote the summary, for the turn's warnings, and is "" if a model did.

KEYS   turn session budget history events spends guard
ARGV   sid tid owner fence:n expect:n drop:n input:n output:n cache_read:n cache_creation:n cost:f? spend
       data mark forget:words why items...
REPLY  COMPACTED | CHANGED | LOST
]]
-- @include lib/owner_fence
-- @include lib/event
-- @include lib/history
-- @include lib/budget
-- @include lib/money
-- @include lib/again
local t = read(turn, {'state', 'owner', 'fence', 'money'})
if not is_owner(t, owner, fence) then return {'LOST'} end
if redis.call('LLEN', history) ~= expect then return {'CHANGED'} end
redis.call('LTRIM', history, drop, -1)
for i = #items, 1, -1 do redis.call('LPUSH', history, items[i]) end
local counted = isolated and turn or session
redis.call('HINCRBY', counted, 'trimmed', drop - #items)
redis.call('HINCRBY', counted, 'history_stamp', 1) -- invalidates the copies that processes have
-- The model no longer sees these results, so a call that requests them again does not count as a repeat.
for fingerprint in forget:gmatch('%S+') do redis.call('HDEL', guard, fingerprint) end
redis.call('HSET', turn, 'compacted', '1', 'aux_compaction', mark)
if why ~= '' then redis.call('HSET', turn, 'unsummarised', why) end
if spend ~= '' then
  add_usage(budget, input, output, cache_read, cache_creation, cost)
  redis.call('RPUSH', spends, spend)
end
if t.money then settle_money(turn, t.money, charged_usd) end
emit(events, 'compaction', data)
ring_again(turn, sid, tid, fence)
return {'COMPACTED'}
