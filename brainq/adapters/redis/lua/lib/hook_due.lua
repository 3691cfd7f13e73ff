-- A call ends, and not in its worker: whoever claims its turn next calls the brain's `on_post_tool_use`, which the call's
-- spec says there is. Used before the call ends: then it has its spec still. `outcome` is JSON; nil: its hook was called.
-- Uses the script's names: turn trace.
local function note_hook_due(call, outcome)
  local spec = outcome and redis.call('HGET', trace, call .. ':spec')
  if not spec or not spec:find('"hook":true}$') then return end
  redis.call('HSET', trace, call .. ':hook', outcome .. '\n' .. spec)
  local due = redis.call('HGET', turn, 'hooks_due')
  redis.call('HSET', turn, 'hooks_due', due and due .. ' ' .. call or call)
end
