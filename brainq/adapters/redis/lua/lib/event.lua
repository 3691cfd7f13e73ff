-- Events are numbered without gaps, so a reader can resume from any number. Their ids are ours and none is ever taken out of
-- a stream: its length is the number of its newest event.
-- @include lib/now
-- `data` is a table, or JSON.
-- An id without its second number is that of the first, and 0.
local event_count = {}
local function emit(events_key, kind, data)
  local seq = (event_count[events_key] or redis.call('XLEN', events_key)) + 1
  event_count[events_key] = seq
  redis.call('XADD', events_key, seq, 'kind', kind, 'at', now, 'data', type(data) == 'string' and data or cjson.encode(data))
end
