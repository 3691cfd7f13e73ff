--[[
Decide an approval, once: `decision` is `approved` or `denied`. It is bound to the hash of the arguments it was shown
with. `edit` is the call with other arguments as JSON (spec hash fp lanes), or empty.

KEYS   turn budget trace history events guard
ARGV   sid tid call expect decision:approved/denied who comment edit
REPLY  APPROVED | DENIED | DECIDED state:ApprovalState | EXPIRED | STALE
       | ENDED state:TurnState | GONE
]]
-- @include lib/waves
local held = redis.call('HMGET', trace, call .. ':ask', call .. ':hash', call .. ':ask_ends', call .. ':status')
if not held[1] then return {'GONE'} end
if held[1] ~= 'pending' then return {'DECIDED', held[1]} end
local open = redis.call('HMGET', turn, 'state', 'cancel')
if (open[1] ~= 'active' and open[1] ~= 'parked') or open[2] == '1' or SETTLED[held[4]] then
  return {'ENDED', open[2] == '1' and 'cancelled' or open[1]}
end
if now >= tonumber(held[3]) then
  if held[4] == 'parked' then open_waves() end
  return {'EXPIRED'}
end
if held[2] ~= expect then return {'STALE'} end
redis.call('HSET', trace, call .. ':ask', decision, call .. ':ask_by', who, call .. ':ask_why', comment,
  call .. ':ask_decided_at', now)
if edit ~= '' then
  local other = cjson.decode(edit)
  redis.call('HSET', trace, call .. ':spec', other.spec, call .. ':hash', other.hash, call .. ':fp', other.fp,
    call .. ':lanes', other.lanes, call .. ':edited', '1')
end
emit(events, 'approval.decided', {call = call, decision = decision, edited = edit ~= ''})
-- A call whose wave has not come yet meets the decision when it does.
if held[4] == 'parked' then open_waves() end
return {decision == 'approved' and 'APPROVED' or 'DENIED'}
