--[[
Begin a model call beside the steps: a reflection, or a compaction. It is marked as tried before it is made, so that
one in which a worker dies is not tried for ever. A reflection is paid for here.

KEYS   turn budget
ARGV   owner fence:n kind mark
REPLY  GO | DONE | SPENT | LOST
]]
-- @include lib/holds
-- @include lib/budget
if not holds(turn, owner, fence) then return {'LOST'} end
if redis.call('HGET', turn, 'aside_' .. kind) == mark then return {'DONE'} end
redis.call('HSET', turn, 'aside_' .. kind, mark)
if kind == 'reflection' and budget_take(budget, 'reflections', mark, 1) == 'SPENT' then return {'SPENT'} end
return {'GO'}
