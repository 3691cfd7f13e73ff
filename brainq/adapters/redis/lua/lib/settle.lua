-- Record how a call ended, and open what comes next. Uses the names of lib/waves, and sources and blocked.
-- @include lib/waves

-- Store the side outputs of a call of this tool.
local function note_side(tool, found, block)
  if found ~= '' then push(sources, cjson.decode(found)) end
  if block == '1' then redis.call('SADD', blocked, tool) end
end

-- Store whether another try of the call is sensible (`retryable` is '1').
local function note_retryable(call, retryable)
  if retryable == '1' then redis.call('HSET', trace, call .. ':retryable', '1') end
end

-- the fields of the turn, and of the call, that `settle` needs
local OF_TURN, OF_CALL = {'state', 'gate', 'cancel', 'write_epoch'}, {'status', 'attempt', 'owner', 'effect', 'fp', 'tool',
  'noted', 'early', 'token', 'park', 'started_at', 'lease', 'completed_by', 'given'}

local function is_open(t) return t.state == 'active' and t.gate ~= 'shut' end

-- Settle a call. `c` and `t` are the call and the turn as they were read. `leaves` means that its function has ended,
-- so that it leaves its lanes.
local function settle(call, c, t, status, message, detail, latency_ms, found, block, leaves)
  local epoch, writes = t.write_epoch or '0', c.effect ~= 'read_only'
  if writes then epoch = redis.call('HINCRBY', turn, 'write_epoch', 1) end
  end_call(call, status, message, detail, latency_ms, c.tool)
  if status == 'completed' and c.fp ~= '' then redis.call('HSET', guard, c.fp, epoch) end
  note_side(c.tool, found, block)
  if leaves and writes then leave_lanes(call) end
  count_down(t.cancel)
end
