--[[
The result of a parked call comes from outside, once. EARLY: the call's function has not returned yet; the result is
kept for it. LATE: nobody waits any more; a write is told to the model as evidence. `known` is 1 for a token that is
known to stand for the call; any other must be the one the call has given away. `spent` is what a child turn used, as
JSON: it is paid by this turn.

KEYS   turn budget trace history events guard sources blocked notices spends
ARGV   sid tid call token known:b status:TraceStatus message detail retryable:b found notice spent
REPLY  SETTLED | EARLY | LATE status:TraceStatus | USED | BAD | GONE
]]
-- @include lib/settle
-- @include lib/late
-- @include lib/budget
local function pay()
  if spent == '' then return end
  local used = cjson.decode(spent)
  add_usage(budget, used.input_tokens, used.output_tokens, used.cache_read_tokens, used.cache_creation_tokens, used.cost)
  redis.call('RPUSH', spends, used.spend)
end

local held = redis.call('HMGET', trace, call .. ':status', call .. ':token', call .. ':started_at', call .. ':effect',
  call .. ':noted', call .. ':completed_by', call .. ':early', call .. ':given')
if not held[1] then return {'GONE'} end
if held[6] then return {held[6] == token and 'USED' or 'BAD'} end
if not held[2] then
  if known ~= '1' and held[8] ~= token then return {'BAD'} end
  if held[1] == 'running' then
    if held[7] then return {cjson.decode(held[7]).token == token and 'USED' or 'BAD'} end
    pay()
    redis.call('HSET', trace, call .. ':early',
      cjson.encode({token = token, status = status, message = message, detail = detail, retryable = retryable,
        found = found, notice = notice}))
    return {'EARLY'}
  end
  -- Its worker died, or was cut off, before it could park: what it had asked for may come all the same.
  if held[8] ~= token or held[7] or not SETTLED[held[1]] then return {'BAD'} end
elseif held[2] ~= token then
  return {'BAD'}
end
local open = redis.call('HMGET', turn, 'state', 'gate')
redis.call('HSET', trace, call .. ':completed_by', token)
pay()
if held[1] == 'parked' and (open[1] == 'active' or open[1] == 'parked') and open[2] ~= 'shut' then
  note_retryable(call, retryable)
  settle(call, status, message, detail, now - tonumber(held[3] or now), found, '0')
  return {'SETTLED'}
end
if held[1] ~= 'parked' then came_late(call, held[1], held[4], held[5], notice) end
return {'LATE', held[1]}
