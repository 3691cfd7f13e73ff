--[[
End a turn, once, by its owner: calls still open get their message, the answer enters the session's history,
the write gate shuts, the session's next turn starts, the finalizer is rung.
`base` is the key prefix of the session's turns; the next turn's keys are made from it, in the same slot.

KEYS   session waiting turn budget trace history events notices spends
ARGV   base sid tid owner fence:n ending stop_reason text failure item marker open_status open_text first_step tail input:n output:n cache_read:n cache_creation:n cost spend keep_session_ms:n
REPLY  ENDED next freed | LOST
]]
-- @include lib/holds
-- @include lib/budget
-- @include lib/activate
-- @include lib/finalize
-- @include lib/settled
if not holds(turn, owner, fence) then return {'LOST'} end

if tail ~= '' then
  local at = redis.call('HMGET', turn, 'step', 'attempt')
  emit(turn, events, 'text.delta', {step = at[1] + 1, attempt = tonumber(at[2]), text = tail})
end
add_usage(budget, input, output, cache_read, cache_creation, cost)
if spend ~= '' then redis.call('RPUSH', spends, spend) end
if item ~= '' then learn_ratio(session, turn, input) end
local held = redis.call('HMGET', turn, 'step', 'n_calls', 'absorbed')
local step, count, freed = tonumber(held[1]), tonumber(held[2] or 0), {}
if count > 0 and held[3] ~= held[1] then
  for i = 0, count - 1 do
    local call = 'c' .. step .. '-' .. i
    local known = redis.call('HMGET', trace, call .. ':status', call .. ':tool', call .. ':started_at',
      call .. ':effect', call .. ':msg')
    if not SETTLED[known[1]] then
      local took_ms = known[3] and now - tonumber(known[3]) or 0
      local said = open_text:gsub('%%SECONDS%%', string.format('%.1f', took_ms / 1000))
      redis.call('HSET', trace, call .. ':status', open_status, call .. ':ended_at', now, call .. ':latency', took_ms)
      emit(turn, events, 'call.ended', {call = call, status = open_status, latency_ms = took_ms})
      known[5] = cjson.encode({role = 'tool', call_id = call, name = known[2], content = said,
        is_error = true, turn = tid, step = step})
      -- A running call frees its own lanes when its function ends; one that never started cannot.
      if known[1] ~= 'running' and known[4] ~= 'read_only' then freed[#freed + 1] = call end
    end
    if step > 0 then
      redis.call('RPUSH', history, known[5])
      redis.call('HDEL', trace, call .. ':msg')
    end
    forget_work(call)
  end
  redis.call('HSET', turn, 'absorbed', step)
end
if item ~= '' then redis.call('RPUSH', history, item) end
if marker ~= '' then redis.call('RPUSH', history, marker) end
local length, trimmed = redis.call('LLEN', history), tonumber(redis.call('HGET', session, 'trimmed')) or 0
redis.call('HSET', turn, 'end_at', length + trimmed)
if length > 2000 then
  redis.call('LTRIM', history, -2000, -1)
  redis.call('HSET', session, 'trimmed', trimmed + length - 2000)
end
close_turn(turn, events, sid, tid, ending, stop_reason, text, failure, first_step)

local next_turn = redis.call('LPOP', waiting)
if next_turn then
  local key = base .. next_turn
  activate(session, key, key .. ':budget', key .. ':events', sid, next_turn)
else
  redis.call('HSET', session, 'live', '')
  for _, key in ipairs({session, history, notices}) do redis.call('PEXPIRE', key, keep_session_ms) end
end
return {'ENDED', next_turn or '', table.concat(freed, ' ')}
