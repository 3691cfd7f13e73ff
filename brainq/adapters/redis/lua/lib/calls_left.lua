-- The calls that are still open when a turn ends. Uses the names of turn_end.

-- A write that has begun may take effect, whatever becomes of the turn.
local function status_of_open(status, effect, park, tried)
  local elsewhere = park == 'outside' or park == 'child' or park == 'client'
  local begun = status == 'running' or tried or (status == 'parked' and elsewhere)
  if begun and effect ~= 'read_only' and open_status == 'cancelled' then return 'unknown' end
  return open_status
end

local function has_open_calls(t) return tonumber(t.n_calls or 0) > 0 and t.absorbed ~= t.step end

-- Give every open call its message, in the model's order. Calls that do not run leave their lanes. Returns the child
-- turns that nobody waits for any more. `t` has the turn's fields by name.
-- @lazy
local function close_calls(t)
  local step, count, children = tonumber(t.step), tonumber(t.n_calls), {}
  for i = 0, count - 1 do
    local call = 'c' .. step .. '-' .. i
    local c = read_call(call, {'status', 'tool', 'started_at', 'effect', 'msg', 'park', 'token', 'ask', 'again', 'bell'})
    if not SETTLED[c.status] then
      leave_calls(trace, sid, tid, call, c)
      local took_ms = c.started_at and now - tonumber(c.started_at) or 0
      local text = open_text:gsub('%%SECONDS%%', string.format('%.1f', took_ms / 1000))
      -- An attempt of an idempotent tool may have been lost before the next one began.
      local tried = c.started_at and c.again == '1'
      local status = status_of_open(c.status, c.effect, c.status == 'parked' and c.park, tried)
      if status == 'unknown' then text = text .. ' Whether it took effect is not known.' end
      redis.call('HSET', trace, call .. ':status', status, call .. ':ended_at', now, call .. ':latency', took_ms)
      if c.ask == 'pending' then redis.call('HSET', trace, call .. ':ask', 'void') end
      emit(events, 'call.ended', {call = call, tool = c.tool, status = status, latency_ms = took_ms, detail = ''})
      c.msg = cjson.encode({role = 'tool', call_id = call, name = c.tool, content = text,
        is_error = true, turn = tid, step = step})
      if c.status == 'parked' and c.park == 'child' then children[#children + 1] = c.token end
      -- A running call leaves its lanes when its function ends.
      if c.status ~= 'running' and c.effect ~= 'read_only' then leave_lanes(call) end
    end
    if step > 0 then
      redis.call('RPUSH', history, c.msg)
      redis.call('HDEL', trace, call .. ':msg')
    end
    forget_work({call}, {})
  end
  redis.call('HSET', turn, 'absorbed', step)
  return children
end
