-- Events are numbered by the turn itself, so a reader can resume from any number and see a gap.
-- @include lib/now
local function emit(turn_key, events_key, kind, data)
  local seq = redis.call('HINCRBY', turn_key, 'event_seq', 1)
  redis.call('XADD', events_key, seq .. '-0', 'kind', kind, 'at', now, 'data', cjson.encode(data))
end
