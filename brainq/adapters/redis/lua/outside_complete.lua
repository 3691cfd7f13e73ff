--[[
Complete a parked call with its result from outside, once. EARLY means that the call's function has not returned yet,
and the result is kept for it. LATE means that the call is no longer open; the end of a write is then shown to the model
as evidence. `known` is 1 for a token that certainly belongs to the call; any other token must be the one that the call
has given away. `spent` is the usage of a child turn, as JSON, which this turn pays. `outcome` is JSON for the brain's
hook.

KEYS   turn budget trace history events guard sources blocked notices spends
ARGV   sid tid call token known:b status:TraceStatus message detail retryable:b found notice spent outcome
REPLY  SETTLED | EARLY | LATE status:TraceStatus | USED | BAD | GONE
]]
-- @include lib/settle
-- @include lib/late
-- @include lib/budget
-- @include lib/hook_due
local function pay()
  if spent == '' then return end
  local used = cjson.decode(spent)
  add_usage(budget, used.input_tokens, used.output_tokens, used.cache_read_tokens, used.cache_creation_tokens, used.cost)
  redis.call('RPUSH', spends, used.spend)
end

local c = read_call(call, OF_CALL)
if not c.status then return {'GONE'} end
if c.completed_by then return {c.completed_by == token and 'USED' or 'BAD'} end
if not c.token then
  if known ~= '1' and c.given ~= token then return {'BAD'} end
  if c.status == 'running' then
    if c.early then return {cjson.decode(c.early).token == token and 'USED' or 'BAD'} end
    pay()
    redis.call('HSET', trace, call .. ':early',
      cjson.encode({token = token, status = status, message = message, detail = detail, retryable = retryable,
        found = found, notice = notice, outcome = outcome}))
    return {'EARLY'}
  end
  -- The worker died, or was cut off, before it could park the call. The result that it requested may still come.
  if c.given ~= token or c.early or not SETTLED[c.status] then return {'BAD'} end
elseif c.token ~= token then
  return {'BAD'}
end
local t = read(turn, OF_TURN)
redis.call('HSET', trace, call .. ':completed_by', token)
pay()
if c.status == 'parked' and (t.state == 'active' or t.state == 'parked') and t.gate ~= 'shut' then
  note_retryable(call, retryable)
  note_hook_due(call, outcome)
  settle(call, c, t, status, message, detail, now - tonumber(c.started_at or now), found, '0')
  return {'SETTLED'}
end
if c.status ~= 'parked' then came_late(call, c, c.status, t.state, notice) end
return {'LATE', c.status}
