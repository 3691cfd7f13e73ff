-- Doorbells. A bell is put where the broker reads it, in the same step as the change that it announces. The loader
-- inserts bell_key(queue) and bell_text(queue, ...) as functions, because a table of all queues would be built again at
-- each call. In outbox mode the key is empty, and the bell goes to the session's outbox, which the caller publishes
-- afterwards.
-- @include generated/doorbells
-- the session whose outbox gets the bells, if it is not the session that they are rung for
local outbox_sid

-- Return the header that leads from a Celery task to the turn's span, if this process traces.
local function header_of_trace(sid, tid)
  local trace = redis.call('HGET', OUTBOX_PREFIX .. '{' .. sid .. '}:t:' .. tid, 'trace')
  return trace and ',"traceparent":"' .. trace .. '"' or ''
end

-- Return the list of `QUEUE@BUILD`, which only the workers of one build read (lib/pass_on), or '' if it is unknown
-- here.
-- @lazy
local function list_of_build(queue)
  local word, build = queue:match('^([^@]+)@(.+)$')
  local key = bell_key(word)
  return key == '' and '' or key .. '@' .. build, build
end

-- Such a list has a lifetime, because no worker may be left to empty it. The sweeper rings again for its bells on a
-- queue that is served.
local BUILD_BELLS_MS = 86400000
-- @lazy
local function ring_build(queue, outbox, text)
  local key, build = list_of_build(queue)
  text = text:gsub('"routing_key":"[^"]+', '%0@' .. build, 1)
  redis.call(key == '' and 'RPUSH' or 'LPUSH', key == '' and outbox or key, text)
  if key ~= '' then redis.call('PEXPIRE', key, BUILD_BELLS_MS) end
end

-- Ring. `tool` is only for the queues of calls, whose tasks are shown by the name of their tool. `since_s` is when the
-- wait began, if that is not now.
-- @lazy
local function ring(queue, sid, id, suffix, args, root, tool, since_s)
  local key, task_id = bell_key(queue), id .. '.' .. suffix
  local tag = task_id .. '.' .. (since_s or clock[1]) .. clock[2]
  local encoded = cjson.encode(args):gsub('"', '\\"')
  local text = bell_text(key and queue or queue:match('^[^@]+'), encoded, '(' .. table.concat(args, ', ') .. ')', task_id, root, tag, tool,
    TRACES and header_of_trace(sid, root) or '')
  if not key then
    ring_build(queue, OUTBOX_PREFIX .. '{' .. (outbox_sid or sid) .. '}:outbox', text)
  elseif key == '' then
    redis.call('RPUSH', OUTBOX_PREFIX .. '{' .. (outbox_sid or sid) .. '}:outbox', text)
  else
    redis.call('LPUSH', key, text)
  end
end

-- Ring again for something that may have been rung for. The task gets another id: with the same id, the success of a
-- task that comes too late and does nothing would hide how the other one ended.
local function ring_anew(queue, sid, id, suffix, args, root, tool, since_s)
  ring(queue, sid, id, suffix .. '.again-' .. now, args, root, tool, since_s)
end

-- Return how many bells wait in a queue. It is unknown, and more than any number, if the broker is elsewhere.
local function waiting_in(queue)
  local key = bell_key(queue)
  return key == '' and math.huge or redis.call('LLEN', key)
end

-- Return whether operators have stopped anything (lib/stops). It is read together with the mark, so that it costs no
-- command.
local has_stops
local function are_stops()
  if has_stops == nil then has_stops = redis.call('HGET', BELLS_KEY, 'stops') end
  return has_stops
end

-- Mark the queue of a claimed bell: every bell that was rung earlier on it has been taken from it, or is lost. The mark
-- may lag a little, because it is only used for bells that are seconds old.
local function mark_claimed(queue, rung_at)
  rung_at = tonumber(rung_at or 0) or 0
  local known = redis.call('HMGET', BELLS_KEY, queue, 'stops')
  has_stops = known[2]
  if rung_at > tonumber(known[1] or 0) + 100 then
    redis.call('HSET', BELLS_KEY, queue, rung_at)
    redis.call('PEXPIRE', BELLS_KEY, 86400000)
  end
end

-- Return whether a bell that was rung at `rung_at` must be lost. This prevents copies from flooding a long queue.
-- @lazy
local function bell_is_lost(queue, rung_at, rering_ms)
  if now - (tonumber(rung_at or 0) or 0) < rering_ms then return false end
  local key = bell_key(queue) or list_of_build(queue)
  if key == '' or redis.call('LLEN', key) == 0 then return true end
  local mark = redis.call('HGET', BELLS_KEY, queue)
  return mark and tonumber(mark) > tonumber(rung_at or 0)
end
