-- The thread continues with the finalizer's first step of a turn that ends (lib/stay). It uses the script's names turn, session,
-- history, sid and tid.
-- @include lib/stay
-- @include lib/messages_of_turn
-- Claims the step, which has no owner according to its fields. Returns whether it was claimed.
-- @lazy
local function take_final(tid)
  local visit = visit_for('finalize', tid)
  if not visit then return false end
  local why = refusal(visit.brains, read(turn, {'brain', 'format', 'pin'}), turn)
  if why then return decline(why) end
  redis.call('HSET', turn, 'fin_owner', visit.owner, 'fin_fence', 1, 'fin_tries', 1, 'fin_lost', 1, 'fin_ahead', '',
    'fin_lease', now + visit.lease_ms)
  stayed = visit
  return true
end

-- Allows the script's thread to continue, unless `queues` is empty.
local function offer_final(queues, visit)
  if queues == '' then return end
  offer_stay(queues, visit, tid)
  claim_first_final = take_final
end

-- Returns the reply, with the replies of the visit's reads and at most `most` of the turn's messages.
-- @lazy
local function final_reply(...)
  stayed.reply = {'FINAL', ...}
  return add_messages(read_with_claim(), stayed.most)
end

-- Returns what the script claimed for this visit when it ran before, if its reply was lost; or else nil.
-- @lazy
local function final_before(queues, text)
  if queues == '' then return end
  local visit, t = cjson.decode(text), read(turn, {'state', 'fin_owner', 'fin_fence', 'brain'})
  if t.state ~= 'closing' or t.fin_owner ~= visit.owner or t.fin_fence ~= '1' then return end
  stayed = visit
  return final_reply('', '', '', t.brain or '')
end
