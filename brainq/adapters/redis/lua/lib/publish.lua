-- Publish the result. The turn, which is closing, gets its final state, and readers get their last event.
-- @include lib/event
local function publish(turn_key, result_key, events_key, ending, body, data)
  redis.call('SET', result_key, body)
  redis.call('HSET', turn_key, 'state', ending, 'result_at', now)
  emit(events_key, 'result', data)
end
