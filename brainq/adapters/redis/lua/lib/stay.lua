-- The thread that runs a script may continue with what the script opens: that is claimed for it instead of being rung for, at most
-- once a script, and only for the script's own turn. `queues` (words) are those whose work its process serves and has a thread for.
-- `visit` is JSON: `owner` and `lease_ms` of the claim, the `brains` of the process, what of it is `declared` (lib/builds), and the
-- `reads` whose replies come with the claim. Nobody is passed by that: a doorbell is rung as ever if one waits in a queue that shares
-- the thread.
-- @include lib/ring
-- @include lib/broker_queue
-- @include lib/refusal
-- @include lib/opened
local offered, visit_text, offered_tid, stayed
local SHARED = 'local_write network destructive'  -- by one pool

-- @lazy
local function offer_stay(queues, visit, tid)
  offered, visit_text, offered_tid = ' ' .. queues .. ' ', visit, tid
end

-- Returns the visit, if it may take what is opened in this queue. Claims by doorbells look at what operators have stopped.
-- @lazy
local function visit_for(queue, tid)
  if stayed or tid ~= offered_tid or not offered:find(' ' .. queue .. ' ', 1, true) then return end
  for list in (SHARED:find(queue, 1, true) and SHARED or queue):gmatch('%S+') do
    if not nobody_waits(list) or is_waited_for(list) then return end
  end
  return not are_stops() and cjson.decode(visit_text)
end

-- Returns the reply of a script that claimed something, with what the visit reads, once all else is done; or nil.
-- @lazy
local function read_with_claim()
  for _, command in ipairs(stayed.reads or {}) do stayed.reply[#stayed.reply + 1] = redis.call(unpack(command)) end
  return stayed.reply
end
