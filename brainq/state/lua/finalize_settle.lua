--[[
A finalizer step is done (or given up) and the chain goes on with `next_step`; when that is empty the chain is
finished and the turn's keys get their lifetime.

KEYS   turn spec budget trace guard events sources blocked spends result mailbox receipts changes history
ARGV   sid tid fence:n step next_step keep_ms:n
REPLY  NEXT | FINISHED | LOST
]]
-- @include lib/now
-- @include lib/ring
local held = redis.call('HMGET', turn, 'fin_fence', 'fin_owner', 'fin_step', 'result_at')
if tonumber(held[1] or -1) ~= fence or held[2] == '' or held[3] ~= step then return {'LOST'} end
redis.call('HSET', turn, 'fin_step', next_step, 'fin_owner', '', 'fin_tries', 0, 'fin_rung', now,
  'fin_retry_at', 0, 'fin_failing_since', 0)
if next_step ~= '' then
  -- What comes after the result goes behind what leads to other turns' results.
  ring(held[4] and 'finalize_later' or 'finalize', sid, tid, 'final.' .. next_step .. '.' .. fence,
    {sid, tid, next_step}, tid)
  return {'NEXT'}
end
redis.call('HSET', turn, 'awaits', 'nobody')
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, keep_ms) end
return {'FINISHED'}
