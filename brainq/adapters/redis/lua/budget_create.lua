--[[
Create a budget, once. Its deadline starts now.

KEYS   budget
ARGV   timeout_ms:n max_steps:n max_tool_calls:n max_reflections:n max_context_tokens:n max_total_tokens:n?
       max_cost_usd:f? keep_ms:n
REPLY  CREATED | EXISTS
]]
-- @include lib/now
if redis.call('EXISTS', budget) == 1 then return {'EXISTS'} end
redis.call('HSET', budget, 'timeout_ms', timeout_ms, 'deadline', now + timeout_ms, 'steps_max', max_steps,
  'tool_calls_max', max_tool_calls, 'reflections_max', max_reflections, 'max_context_tokens', max_context_tokens,
  'tokens_max', max_total_tokens, 'cost_max_usd', max_cost_usd)
redis.call('PEXPIRE', budget, keep_ms)
return {'CREATED'}
