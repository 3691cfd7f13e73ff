-- Record how a call ended, and open what comes next. Uses the names of lib/waves, and sources blocked.
-- @include lib/waves

-- What a call left beside its result.
local function note_side(call, found, block)
  if found ~= '' then
    for _, source in ipairs(cjson.decode(found)) do redis.call('RPUSH', sources, source) end
  end
  if block == '1' then redis.call('SADD', blocked, redis.call('HGET', trace, call .. ':tool')) end
end

-- `retryable` is 1 where whoever asked may well ask again.
local function note_retryable(call, retryable)
  if retryable == '1' then redis.call('HSET', trace, call .. ':retryable', '1') end
end

-- `leaves`: its function has ended, so it leaves its lanes.
local function settle(call, status, message, detail, latency_ms, found, block, leaves)
  local held = redis.call('HMGET', trace, call .. ':effect', call .. ':fp')
  if held[1] ~= 'read_only' then redis.call('HINCRBY', turn, 'write_epoch', 1) end
  end_call(call, status, message, detail, latency_ms)
  if status == 'completed' and held[2] ~= '' then
    redis.call('HSET', guard, held[2], redis.call('HGET', turn, 'write_epoch') or '0')
  end
  note_side(call, found, block)
  if leaves and held[1] ~= 'read_only' then leave_lanes(call) end
  count_down()
end
