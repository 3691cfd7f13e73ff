-- A doorbell is put where the broker reads it in the same step as the change it announces.
-- DOORBELLS, written in by the loader: queue word -> {key, text}. In outbox mode `key` is empty and the bell
-- goes to the session's outbox, which the caller publishes when the script is done.
-- @doorbells
local function ring(queue, sid, id, suffix, args, root)
  local bell = DOORBELLS[queue]
  local fill = {
    ARGS = cjson.encode(args),
    ARGSREPR = '(' .. table.concat(args, ', ') .. ')',
    TASK_ID = id .. '.' .. suffix,
    ROOT_ID = root,
    TAG = id .. '.' .. suffix .. '.' .. redis.sha1hex(clock[1] .. clock[2] .. suffix):sub(1, 8),
  }
  fill.ARGS = fill.ARGS:gsub('"', '\\"')
  local text = bell.text:gsub('%%([A-Z_]+)%%', fill)
  if bell.key ~= '' then
    redis.call('LPUSH', bell.key, text)
  else
    redis.call('RPUSH', OUTBOX_PREFIX .. '{' .. sid .. '}:outbox', text)
  end
end

-- A claimed bell marks its queue: everything rung earlier on it has been taken from it, or lost.
local function mark_claimed(queue, rung_at)
  local mark = redis.call('HGET', BELLS_KEY, queue)
  rung_at = tonumber(rung_at or 0) or 0
  if rung_at > 0 and (not mark or tonumber(mark) < rung_at) then
    redis.call('HSET', BELLS_KEY, queue, rung_at)
    redis.call('PEXPIRE', BELLS_KEY, 86400000)
  end
end

-- Whether a bell rung at `rung_at` must be lost: a long queue is not flooded with copies.
local function bell_is_lost(queue, rung_at, rering_ms)
  if now - (tonumber(rung_at or 0) or 0) < rering_ms then return false end
  local bell = DOORBELLS[queue]
  if bell.key == '' or redis.call('LLEN', bell.key) == 0 then return true end
  local mark = redis.call('HGET', BELLS_KEY, queue)
  return mark and tonumber(mark) > tonumber(rung_at or 0)
end
