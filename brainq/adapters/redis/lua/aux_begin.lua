--[[
Begin a model call beside the steps: a reflection or a compaction. It is marked as tried before it is made, so that a
call in which a worker dies is not tried for ever. The next claim then charges `under_way`, a JSON array of spends. The
call is not made if it could exceed the turn's limit of tokens or money. A reflection is paid for here. `money` and
MONEY are as in step_begin.

KEYS   turn budget
ARGV   owner fence:n kind:reflection/compaction mark tokens:n usd:f? under_way money
REPLY  GO | DONE | MONEY why:wait/short window start:n wanted expected in_flight:n is_new:b | SPENT what:tokens/cost/reflections | LOST
]]
-- @include lib/owner_fence
-- @include lib/budget
-- @include lib/money
if not is_owned_by(turn, owner, fence) then return {'LOST'} end
if redis.call('HGET', turn, 'aux_' .. kind) == mark then return {'DONE'} end
redis.call('HSET', turn, 'aux_' .. kind, mark)
local too_much = would_pass(budget, tokens, usd)
if too_much then return {'SPENT', too_much} end
if kind == 'reflection' and claim_units(budget, 'reflections', {mark})[1] == 'SPENT' then return {'SPENT', 'reflections'} end
local refused = money ~= '' and reserve_money(turn, money)
if refused then
  redis.call('HDEL', turn, 'aux_' .. kind) -- so that it may be tried again
  return {'MONEY', unpack(refused)}
end
redis.call('HSET', turn, 'aux_open', kind, 'aux_tokens', tokens, 'aux_usd', usd,
  'aux_under_way', kind .. ' ' .. under_way)
return {'GO'}
