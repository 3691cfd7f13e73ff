--[[
Take a place among the requests to one model (lib/rates), or wait for one in the queue (lib/permit_queue has a drawing).
`ticket` waits in its tenant's turn, within the tenant by `rank`. `place` is the request, new for each try. Both begin
with the session. `estimated` of the `tokens` are scaled by the ratio that the service's counts have shown. `shared`
means that this cell has a share of the limits. LATE means that the wait would be longer than `most_wait_ms`.

KEYS   places line order due rule tenants by limited
ARGV   model place ticket rank:n tokens:n estimated:n requests_most:n? tokens_most:n? window_ms:n slack_ms:n most_wait_ms:n shared:b
REPLY  GO | WAIT wait_ms:n what:requests/tokens/stop most:n | LATE wait_ms:n what:requests/tokens/stop most:n
]]
-- @include lib/rates
-- @include lib/rate_learn
-- @include lib/permit_queue
-- @include lib/held_back
-- @include lib/tokens_free
-- @include lib/cell_share
if redis.call('ZSCORE', places, place) then return {'GO'} end
local r = read(rule, {'requests', 'tokens', 'learned_until', 'stopped_until', 'sum', 'seen', 'present', 'asked', 'asked_at', 'before',
  'before_at', 'probe', 'probe_until', 'ratio_of', 'ratio_is', 'ratio_n'})
local stopped_until = mend_clock(r.seen, tonumber(r.stopped_until or 0))
local sum = forget_over(tonumber(r.sum or 0))
forget_absent(ticket)
local most, most_tokens = least(requests_most, r.requests, r), least(tokens_most, r.tokens, r)
local ratio = most_tokens and estimated > 0 and ratio_of(r) or 1
tokens = tokens + math.ceil(estimated * (ratio - 1))
local cost, whole, rest_until, none_until = cost_of(tokens, most, most_tokens), most
most, most_tokens, rest_until, none_until = shared_limits(most, most_tokens)
local tenant, present, taken = tenant_of(ticket), tonumber(r.present or 0), redis.call('ZCARD', places)
local ahead, before, is_queued, next_tag = queue_position(ticket, rank, present)
-- When may the request go, and which limit decides that?
local at, what, limit = now, 'stop', 0
local function not_before(when, why, number)
  if when > at then at, what, limit = when, why, number end
end

if stopped_until > now then -- the waiting requests return one by one
  not_before(stopped_until + ahead * math.ceil(most and window_ms / most or 50), 'stop', 0)
end
if r.probe then not_before(tonumber(r.probe_until or 0), 'stop', 0) end -- one request tries the service first
not_before(none_until, 'requests', whole or 0)
local to_go = ahead -- queued requests that go before this one
if most and is_shared(tenant, r) then
  local when
  when, to_go = with_share(tenant, before, ahead, taken, most)
  not_before(when, 'requests', most)
end
if most and taken + to_go >= most then
  -- This many places must end first. If fewer are taken, the requests ahead must get theirs, and end a window later.
  local over = taken + to_go - most
  local when = over < taken and score_at(over) or rounds_later((over - taken) / most)
  not_before(when, 'requests', most)
end
if most_tokens then not_before(tokens_free_at(sum, ahead, most_tokens, ratio, r), 'tokens', most_tokens) end

at = math.min(at, rest_until)
local wait_ms = at - now -- now act: give up, go, or wait
if wait_ms > most_wait_ms then
  leave_queue(ticket)
  return {'LATE', wait_ms, what, limit}
end
if not is_queued then
  redis.call('ZADD', tenants, next_tag + cost, tenant)
  join_queue(ticket, rank, next_tag)
end
if wait_ms <= 0 then
  move_on(math.max(leave_queue(ticket, true), present + math.ceil(cost / SLOWEST)))
  redis.call('ZADD', places, now + window_ms + slack_ms, place)
  redis.call('HINCRBY', by, tenant, 1)
  if r.probe then redis.call('HSET', rule, 'probe', place, 'probe_until', now + window_ms) end
  redis.call('HSET', rule, 'sum', sum + tokens, 't:' .. place, tokens, 'seen', now)
else
  if not is_queued then move_on(present + 1) end
  redis.call('ZADD', due, at, ticket)
  redis.call('HSET', rule, 't:' .. ticket, tokens)
end
if not is_queued or wait_ms <= 0 then note_asked(tenant, r) end
redis.call('HSET', rule, 'set_requests', requests_most, 'set_tokens', tokens_most)
redis.call('ZADD', limited, 'NX', 0, model)
for _, key in ipairs({places, line, order, due, rule, tenants, by, limited}) do redis.call('PEXPIRE', key, KEEP_MS) end
return wait_ms <= 0 and {'GO'} or {'WAIT', wait_ms, what, limit}
