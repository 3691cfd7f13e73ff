--[[
End a turn, once, by its owner. Its mailbox is sealed, its open calls get their message, the answer enters the session's
history, the write gate shuts, its capacity goes to the next turn, and the finalizer is rung for. MORE means that input
came while the last step was answered, and that another step may read it; nothing has changed. CHANGED means that there
are more than the `n_changes` changes that the diff was made of. `base` is the key prefix of the session's turns, from
which the next turn's keys are made, in the same slot. `lost` is the cost of requests that broke off, as a JSON array of
spends, or "" if the outcome of a model call in progress is unknown. `outcome` is the note that the session keeps of a
turn with a separate history.
`stay`: the queues of what the thread continues with, by `visit` (lib/stay). FINAL: it has ended, and the thread has the first step.
`declined` is the reason if the thread does not have it.

KEYS   session waiting turn budget trace history events guard notices spends mailbox receipts changes flags readiness
ARGV   base sid tid owner fence:n ending:Ending stop_reason:StopReason text failure item marker outcome
       open_status:TraceStatus open_text first_step tail last diff n_changes:n input:n output:n cache_read:n
       cache_creation:n cost:f? spend lost keep_session_ms:n stay:words visit
REPLY  ENDED next bounced:words children:words declined... | FINAL next bounced:words children:words brain found... | MORE | CHANGED | LOST
]]
-- @include lib/owner_fence
-- @include lib/budget
-- @include lib/money
-- @include lib/finalize
-- @include lib/waves
-- @include lib/own_history
-- @include lib/go_to_next
-- @include lib/calls_left
-- @include lib/inputs_left
-- @include lib/stay_final
local KEPT_MESSAGES = 2000  -- of a session's history: as many as a step reads

local t = read(turn, {'state', 'owner', 'fence', 'step', 'attempt', 'estimate', 'cancel', 'n_calls', 'absorbed', 'number', 'flag',
  'trimmed', 'isolated', 'brain', 'thinking', 'thinking_step', 'estimate_usd', 'under_way', 'money'})
if not is_owner(t, owner, fence) then return final_before(stay, visit) or {'LOST'} end
use_own_history(t.isolated)
if redis.call('LLEN', changes) ~= n_changes then return {'CHANGED'} end
local inputs = redis.call('LRANGE', mailbox, 0, -1)
if stop_reason == 'answered' and item ~= '' and may_go_on(inputs, t.cancel) then return {'MORE'} end

if tail ~= '' then
  emit(events, 'text.delta', {step = t.step + 1, attempt = tonumber(t.attempt), text = tail})
end
if t.thinking == '1' and spend == '' and lost == '' then charge_thinking(budget, spends, t) end
charge_spends(budget, spends, lost)
add_usage(budget, input, output, cache_read, cache_creation, cost)
if spend ~= '' then redis.call('RPUSH', spends, spend) end
if t.money then settle_money(turn, t.money, charged_usd) end
if item ~= '' and ending == 'completed' then learn_ratio(session, t.estimate, input) end
local children = has_open_calls(t) and close_calls(t) or {}
local messages = {}
if item ~= '' then messages[1] = item end
if marker ~= '' then messages[#messages + 1] = marker end
local length = push(history, messages) or redis.call('LLEN', history)
if outcome ~= '' then redis.call('RPUSH', session_history, outcome) end
local s = read(session, {'paused', 'trimmed'})
local trimmed = tonumber((isolated and t or s).trimmed or 0)
if not isolated and length > KEPT_MESSAGES then
  redis.call('LTRIM', history, -KEPT_MESSAGES, -1)
  redis.call('HSET', session, 'trimmed', trimmed + length - KEPT_MESSAGES)
end
redis.call('HSET', turn, 'end_at', length + trimmed)
-- A turn that only compacts does not begin in the history, but counts like any other.
if ending == 'completed' and not t.number then
  redis.call('HSET', turn, 'number', redis.call('HINCRBY', session, 'turns', 1))
end
local bounced = bounce_inputs(inputs, events, mailbox, receipts)
if last ~= '' then redis.call('HSET', turn, 'last_agent_message', last) end
if diff ~= '' then
  redis.call('HSET', turn, 'diff', diff)
  emit(events, 'turn.diff', {diff = diff})
end
offer_final(stay, visit)
close_turn(turn, events, sid, tid, ending, stop_reason, text, failure, first_step)

if t.flag then redis.call('HDEL', flags, t.flag) end
local next_turn = go_to_next(s.paused == '1', t.brain)
bounced, children = table.concat(bounced, ' '), table.concat(children, ' ')
return stayed and final_reply(next_turn, bounced, children, t.brain or '') or {'ENDED', next_turn, bounced, children, declined}
