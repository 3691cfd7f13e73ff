-- The lists of calls, one for each effect, for which tenants take turns (lib/broker_queue). A dispatched call that
-- finds no place in its list waits in the queue. CALL:bell then is `first`, or `again` if the call was rung for before.
-- For a call that has waited and was rung for the first time, it is the time of that bell.
-- @include lib/broker_queue
local function waits_by(bell) return bell == 'first' or bell == 'again' end

local function member_of(sid, tid, call) return sid .. ' ' .. tid .. ' ' .. call end

local function ring_attempt(effect, sid, tid, call, attempt, tool, how, since_s)
  local ring_it = how == 'again' and ring_anew or ring
  ring_it(effect, sid, tid, call .. '.' .. attempt, {sid, tid, call, tonumber(attempt)}, tid, tool, since_s)
end

-- A call that was claimed in the meantime, has ended, or is gone needs no bell.
local function publish_call(member)
  local sid, tid, call = member:match('^(%S+) (%S+) (%S+)$')
  local key = OUTBOX_PREFIX .. '{' .. sid .. '}:t:' .. tid .. ':trace'
  local status, how, effect, attempt, tool, since = unpack(redis.call('HMGET', key, call .. ':status', call .. ':bell',
    call .. ':effect', call .. ':attempt', call .. ':tool', call .. ':dispatched_at'))
  if status ~= 'dispatched' or not waits_by(how) then return false end
  redis.call('HSET', key, call .. ':rung_at', now, call .. ':bell', how == 'first' and now or '')
  ring_attempt(effect, sid, tid, call, attempt, tool, how, math.floor(since / 1000))
  return true
end

-- @lazy
local function publish_calls(effect)
  fill_queue(effect, publish_call)
end

-- Publish the next bells in the lists of these effects (words).
local function fill_calls(effects)
  for effect in effects:gmatch('%S+') do
    if is_waited_for(effect) then publish_calls(effect) end
  end
end

-- Return whether the call waits for its tenant's turn: false, 'queued', or 'lost' if it should wait but is not in the
-- queue. `c` has its bell and effect.
local function call_waits(sid, tid, call, c)
  return waits_by(c.bell) and (is_queued(c.effect, member_of(sid, tid, call)) and 'queued' or 'lost') or false
end

-- @lazy
local function leave_call_queue(trace_key, sid, tid, call, effect)
  leave_queue(effect, member_of(sid, tid, call))
  redis.call('HSET', trace_key, call .. ':bell', '')
end

-- Take a call out of the queue, because a copy of its doorbell was claimed or because it has ended. Returns whether it
-- was there.
local function leave_calls(trace_key, sid, tid, call, c)
  if not waits_by(c.bell) then return false end
  leave_call_queue(trace_key, sid, tid, call, c.effect)
  return true
end

-- @lazy
local function join_call_queue(trace_key, sid, tid, call, effect, how)
  redis.call('HSET', trace_key, call .. ':bell', how)
  join_queue(effect, sid, member_of(sid, tid, call), publish_call)
end

-- Ring for a call that has just been marked as dispatched. `c` has its effect, attempt and tool. `how` is `first` or
-- `again`.
local function ring_call(trace_key, sid, tid, call, c, how)
  if has_place(c.effect) then return ring_attempt(c.effect, sid, tid, call, c.attempt, c.tool, how) end
  join_call_queue(trace_key, sid, tid, call, c.effect, how)
end
