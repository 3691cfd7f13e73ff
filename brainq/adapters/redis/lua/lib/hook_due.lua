-- Record that the brain's `on_post_tool_use` must run for a call that no worker ended. The next owner of the turn calls
-- it, if the call's spec says that there is one. This must run before the call ends, while it still has its spec.
-- `outcome` is JSON, or nil if the hook was called. Uses the script's names: turn trace.
local function note_hook_due(call, outcome)
  local spec = outcome and redis.call('HGET', trace, call .. ':spec')
  if not spec or not spec:find('"hook":true}$') then return end
  redis.call('HSET', trace, call .. ':hook', outcome .. '\n' .. spec)
  local due = redis.call('HGET', turn, 'hooks_due')
  redis.call('HSET', turn, 'hooks_due', due and due .. ' ' .. call or call)
end
