-- What a turn inherits from its session: the pin of its brain (`pins` maps the name of a brain to its digest and
-- build), and the format of the state.
-- @include lib/served
-- @include lib/state_format
-- Return the build whose brain the turn would wait for, if no coordinator has had that brain for a minute.
-- @lazy
local function missing_build(pins, brain)
  local pin = cjson.decode(pins)[brain]
  return pin and is_unserved(pin[1]) and pin[2]
end

-- @lazy
local function take_over(turn_key, s, brain)
  local pin = s.pins and cjson.decode(s.pins)[brain]
  if pin then redis.call('HSET', turn_key, 'pin', pin[1], 'pin_build', pin[2]) end
  local format = math.max(STATE_FORMAT, tonumber(s.format or 1))
  if format > 1 then redis.call('HSET', turn_key, 'format', format) end
end

-- Pin the session's turns of this brain, including those that wait.
-- @lazy
local function pin_session(sid, brain, digest, build)
  local key = OUTBOX_PREFIX .. '{' .. sid .. '}:'
  local pins = cjson.decode(redis.call('HGET', key .. 'session', 'pins') or '{}')
  pins[brain] = {digest, build}
  redis.call('HSET', key .. 'session', 'pins', cjson.encode(pins))
  for _, its_tid in ipairs(redis.call('LRANGE', key .. 'waiting', 0, -1)) do
    if (redis.call('HGET', key .. 't:' .. its_tid, 'brain') or '') == brain then
      redis.call('HSET', key .. 't:' .. its_tid, 'pin', digest, 'pin_build', build)
    end
  end
end
