--[[
The last finalizer step is done (or given up): the chain is finished, and the turn's keys get their lifetime.

KEYS   turn spec budget trace guard events sources blocked spends result mailbox receipts changes own_history
ARGV   fence:n step keep_ms:n
REPLY  FINISHED | LOST
]]
-- @include lib/index
local held = redis.call('HMGET', turn, 'fin_fence', 'fin_owner', 'fin_step', 'sid', 'tid')
if tonumber(held[1] or -1) ~= fence or held[2] == '' or held[3] ~= step then return {'LOST'} end
redis.call('HSET', turn, 'fin_step', '', 'fin_owner', '', 'fin_tries', 0, 'fin_rung', now, 'fin_retry_at', 0,
  'fin_failing_since', 0, 'awaits', 'nobody')
redis.call('ZREM', INDEX_KEY, held[4] .. ' ' .. held[5])
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, keep_ms) end
return {'FINISHED'}
