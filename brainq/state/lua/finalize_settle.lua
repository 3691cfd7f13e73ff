--[[
A finalizer step is done (or given up), and the chain goes on with `next_step`. Its owner takes that at once (`GO`),
unless it names no `owner`, or the step comes after the result while others wait for theirs: then it is rung for.

KEYS   turn
ARGV   sid tid fence:n step next_step owner lease_ms:n
REPLY  GO fence:n tries:n revision:n sent:b | NEXT | LOST
]]
-- @include lib/now
-- @include lib/ring
-- @include lib/chain
local t = step_held(turn, fence, {'fin_step', 'result_at', 'revision'})
if not t or t.fin_step ~= step then return {'LOST'} end
local sent = t.result_at
if owner ~= '' and (not sent or nobody_waits('finalize')) then
  redis.call('HSET', turn, 'fin_step', next_step, 'fin_owner', owner, 'fin_fence', fence + 1, 'fin_tries', 1,
    'fin_lease', now + lease_ms, 'fin_rung', now, 'fin_retry_at', 0, 'fin_failing_since', 0, 'fin_lost', 1)
  return {'GO', fence + 1, 1, t.revision or '0', sent and '1' or '0'}
end
redis.call('HSET', turn, 'fin_step', next_step, 'fin_owner', '', 'fin_tries', 0, 'fin_rung', now,
  'fin_retry_at', 0, 'fin_failing_since', 0, 'fin_lost', 0)
-- What comes after the result goes behind what leads to other turns' results.
ring(sent and 'finalize_later' or 'finalize', sid, tid, 'final.' .. next_step .. '.' .. fence,
  {sid, tid, next_step}, tid)
return {'NEXT'}
