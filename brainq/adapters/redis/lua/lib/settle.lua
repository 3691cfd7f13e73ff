-- Record how a call ended, and open what comes next. Uses the names of lib/waves, and sources blocked.
-- @include lib/waves

-- What a call of this tool left beside its result.
local function note_side(tool, found, block)
  if found ~= '' then push(sources, cjson.decode(found)) end
  if block == '1' then redis.call('SADD', blocked, tool) end
end

-- `retryable` is 1 where whoever asked may well ask again.
local function note_retryable(call, retryable)
  if retryable == '1' then redis.call('HSET', trace, call .. ':retryable', '1') end
end

-- What `settle` must know of the turn, and of the call.
local OF_TURN, OF_CALL = {'state', 'gate', 'cancel', 'write_epoch'}, {'status', 'attempt', 'owner', 'effect', 'fp', 'tool',
  'noted', 'early', 'token', 'park', 'started_at', 'lease', 'completed_by', 'given'}

local function is_open(t) return t.state == 'active' and t.gate ~= 'shut' end

-- `c` and `t` as they were read; `leaves`: its function has ended, so it leaves its lanes.
local function settle(call, c, t, status, message, detail, latency_ms, found, block, leaves)
  local epoch, writes = t.write_epoch or '0', c.effect ~= 'read_only'
  if writes then epoch = redis.call('HINCRBY', turn, 'write_epoch', 1) end
  end_call(call, status, message, detail, latency_ms, c.tool)
  if status == 'completed' and c.fp ~= '' then redis.call('HSET', guard, c.fp, epoch) end
  note_side(c.tool, found, block)
  if leaves and writes then leave_lanes(call) end
  count_down(t.cancel)
end
