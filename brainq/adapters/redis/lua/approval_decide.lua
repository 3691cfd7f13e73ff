--[[
Record the decision on an approval, once. The decision is bound to the hash of the arguments that the person saw
(`expect`). `edit` is the call with other arguments, as JSON (spec hash fp lanes), or empty.

KEYS   turn budget trace history events guard
ARGV   sid tid call expect decision:approved/denied who comment edit
REPLY  APPROVED | DENIED | DECIDED state:ApprovalState | EXPIRED | STALE
       | ENDED state:TurnState | GONE
]]
-- @include lib/waves
local c = read_call(call, {'ask', 'hash', 'ask_ends', 'status'})
if not c.ask then return {'GONE'} end
if c.ask ~= 'pending' then return {'DECIDED', c.ask} end
local t = read(turn, {'state', 'cancel'})
if (t.state ~= 'active' and t.state ~= 'parked') or t.cancel == '1' or SETTLED[c.status] then
  return {'ENDED', t.cancel == '1' and 'cancelled' or t.state}
end
if now >= tonumber(c.ask_ends) then
  if c.status == 'parked' then open_waves() end
  return {'EXPIRED'}
end
if c.hash ~= expect then return {'STALE'} end
redis.call('HSET', trace, call .. ':ask', decision, call .. ':ask_by', who, call .. ':ask_why', comment,
  call .. ':ask_decided_at', now)
if edit ~= '' then
  local other = cjson.decode(edit)
  redis.call('HSET', trace, call .. ':spec', other.spec, call .. ':hash', other.hash, call .. ':fp', other.fp,
    call .. ':lanes', other.lanes, call .. ':edited', '1')
end
emit(events, 'approval.decided', {call = call, decision = decision, edited = edit ~= ''})
-- A call of a later wave reads the decision when its wave opens.
if c.status == 'parked' then open_waves() end
return {decision == 'approved' and 'APPROVED' or 'DENIED'}
