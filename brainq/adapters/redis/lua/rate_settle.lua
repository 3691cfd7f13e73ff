--[[
Record the outcome of a request.

- `used`: the tokens that it really used. `counted` of them are the service's count for the `estimated` ones.
- `answered_ms`: how long ago its answer began. Its place counts for one window from then.
- `requests`, `tokens`: the limits per minute that the service reported.
- `stop_ms`: how long the service asked us to wait. `probes` means that one request must try the service first after
  that.
- `mark`: new for each request, so that its report counts once.

All processes are notified of a new limit.

KEYS   places rule limited
ARGV   place model mark used:n? estimated:n? counted:n? answered_ms:n? window_ms:n requests:n? tokens:n? stop_ms:n probes:b
REPLY  OK | LEARNED
]]
-- @include lib/rates
-- @include lib/rate_learn
local counts_until = tonumber(redis.call('ZSCORE', places, place) or '')
if counts_until and used ~= '' and count_place(used) then learn_ratio(estimated, counted) end
if counts_until and answered_ms ~= '' and now - answered_ms + window_ms < counts_until then
  redis.call('ZADD', places, now - answered_ms + window_ms, place)
end
if used ~= '' and redis.call('HGET', rule, 'probe') == place then
  redis.call('HDEL', rule, 'probe', 'probe_until', 'stopped_until') -- the service answers again
end
if requests == '' and tokens == '' and stop_ms == 0 then return {'OK'} end
local r = read(rule, {'said', 'requests', 'tokens', 'learned_until', 'stopped_until'})
if r.said == mark then return {'OK'} end

local is_new = now >= tonumber(r.learned_until or 0)
if requests ~= '' then is_new = is_new or tonumber(r.requests or 0) ~= requests end
if tokens ~= '' then is_new = is_new or tonumber(r.tokens or 0) ~= tokens end
if is_new then redis.call('HDEL', rule, 'requests', 'tokens') end
redis.call('HSET', rule, 'said', mark, 'learned_until', now + LEARNED_MS, 'seen', now)
if requests ~= '' then redis.call('HSET', rule, 'requests', requests) end
if tokens ~= '' then redis.call('HSET', rule, 'tokens', tokens) end
if stop_ms > 0 and now + stop_ms > tonumber(r.stopped_until or 0) then
  redis.call('HSET', rule, 'stopped_until', now + stop_ms)
  if probes == '1' then redis.call('HSET', rule, 'probe', 'next', 'probe_until', 0) else redis.call('HDEL', rule, 'probe') end
end
redis.call('PEXPIRE', rule, KEEP_MS)
redis.call('ZADD', limited, now + LEARNED_MS, model)
redis.call('PEXPIRE', limited, KEEP_MS)
if is_new or stop_ms > 0 then redis.call('PUBLISH', limited, model) end
return {'LEARNED'}
