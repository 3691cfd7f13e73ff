-- A doorbell is put where the broker reads it in the same step as the change it announces.
-- bell_key(queue) and bell_text(queue, ...) are written in by the loader: functions, because a table of all queues
-- would be built anew on each call. In outbox mode the key is empty and the bell goes to the session's outbox,
-- which the caller publishes afterwards.
-- @include generated/doorbells
-- Whose outbox the bells go to, where it is not that of the session they are rung for.
local outbox_sid

-- Where this process traces, for whoever watches Celery's tasks: the header that leads to the turn's span.
local function header_of_trace(sid, tid)
  local trace = redis.call('HGET', OUTBOX_PREFIX .. '{' .. sid .. '}:t:' .. tid, 'trace')
  return trace and ',"traceparent":"' .. trace .. '"' or ''
end

-- The list of `QUEUE@BUILD`, which only the workers of one build read (lib/pass_on); empty where that is not known here.
-- @lazy
local function list_of_build(queue)
  local word, build = queue:match('^([^@]+)@(.+)$')
  local key = bell_key(word)
  return key == '' and '' or key .. '@' .. build, build
end

-- Nobody may be left to empty such a list: what lies in it is rung again by the sweeper where a worker serves it.
local BUILD_BELLS_MS = 86400000
-- @lazy
local function ring_build(queue, outbox, text)
  local key, build = list_of_build(queue)
  text = text:gsub('"routing_key":"[^"]+', '%0@' .. build, 1)
  redis.call(key == '' and 'RPUSH' or 'LPUSH', key == '' and outbox or key, text)
  if key ~= '' then redis.call('PEXPIRE', key, BUILD_BELLS_MS) end
end

-- `tool` is for the queues of calls only: their tasks are shown by their tool's name. `since_s`: since when it waits, where that is
-- not now.
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

-- Ring once more for what may have been rung for. The task has an id of its own: were it the first one's, the success
-- of whichever comes too late and does nothing would be shown in place of how the other ended.
local function ring_anew(queue, sid, id, suffix, args, root, tool, since_s)
  ring(queue, sid, id, suffix .. '.again-' .. now, args, root, tool, since_s)
end

-- Whether a queue is empty; not known of a broker elsewhere.
local function nobody_waits(queue)
  local key = bell_key(queue)
  return key ~= '' and redis.call('LLEN', key) == 0
end

-- Whether operators have stopped anything (lib/stops): read with the mark, so that asking costs no command.
local has_stops
local function are_stops()
  if has_stops == nil then has_stops = redis.call('HGET', BELLS_KEY, 'stops') end
  return has_stops
end

-- A claimed bell marks its queue: everything rung earlier on it has been taken from it, or lost. The mark may lag
-- a little; it is read only for bells that are seconds old.
local function mark_claimed(queue, rung_at)
  rung_at = tonumber(rung_at or 0) or 0
  local known = redis.call('HMGET', BELLS_KEY, queue, 'stops')
  has_stops = known[2]
  if rung_at > tonumber(known[1] or 0) + 100 then
    redis.call('HSET', BELLS_KEY, queue, rung_at)
    redis.call('PEXPIRE', BELLS_KEY, 86400000)
  end
end

-- Whether a bell rung at `rung_at` must be lost: a long queue is not flooded with copies.
-- @lazy
local function bell_is_lost(queue, rung_at, rering_ms)
  if now - (tonumber(rung_at or 0) or 0) < rering_ms then return false end
  local key = bell_key(queue) or list_of_build(queue)
  if key == '' or redis.call('LLEN', key) == 0 then return true end
  local mark = redis.call('HGET', BELLS_KEY, queue)
  return mark and tonumber(mark) > tonumber(rung_at or 0)
end
