--[[
Finish the finalizer's chain after its last step is done or given up. The turn's keys get their lifetime.

KEYS   turn spec budget trace guard events sources blocked spends result mailbox receipts changes own_history
ARGV   fence:n step keep_ms:n
REPLY  FINISHED | LOST
]]
-- @include lib/index
-- @include lib/chain
local t = read(turn, {'fin_fence', 'fin_owner', 'fin_step', 'sid', 'tid'})
if not holds_step(t, fence) or t.fin_step ~= step then return {'LOST'} end
redis.call('HSET', turn, 'fin_step', '', 'fin_owner', '', 'fin_tries', 0, 'fin_rung', now, 'fin_retry_at', 0,
  'fin_failing_since', 0, 'awaits', 'nobody')
redis.call('ZREM', INDEX_KEY, t.sid .. ' ' .. t.tid)
-- A turn that is over does not need these keys.
redis.call('DEL', guard, mailbox)
local kept, seldom = {turn, spec, budget, trace, events, spends, result}, {sources, blocked, receipts, changes, own_history}
if redis.call('EXISTS', unpack(seldom)) > 0 then
  for _, key in ipairs(seldom) do kept[#kept + 1] = key end
end
for _, key in ipairs(kept) do redis.call('PEXPIRE', key, keep_ms) end
return {'FINISHED'}
