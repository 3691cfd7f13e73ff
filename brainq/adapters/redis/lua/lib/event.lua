-- Events are numbered without gaps, so that a reader can resume from any number. Their ids are set here, and none is
-- ever deleted from a stream, so the length of the stream is the number of its newest event.
-- @include lib/now
-- Publish an event. `data` is a table, or JSON. The id needs no second number: Redis takes it as 0.
local event_count = {}
local function emit(events_key, kind, data)
  local seq = (event_count[events_key] or redis.call('XLEN', events_key)) + 1
  event_count[events_key] = seq
  redis.call('XADD', events_key, seq, 'kind', kind, 'at', now, 'data', type(data) == 'string' and data or cjson.encode(data))
end
