-- The thread that runs a script may continue with the work that the script opens. The script then claims this work for the thread
-- instead of ringing for it, at most once, and only for the script's own turn. `queues` (words) are the queues that the thread's
-- process serves and has a free thread for. `visit` is JSON: the claim's `owner` and `lease_ms`, the `brains` of the process, what the
-- process has `declared` (lib/builds), and the `reads`, which are commands whose replies come with the claim. No other work is
-- overtaken: if work waits in a queue that shares the thread, a doorbell is rung instead.
-- @include lib/ring
-- @include lib/broker_queue
-- @include lib/refusal
-- @include lib/opened
local offered, visit_text, offered_tid, stayed
local SHARED = 'local_write network destructive'  -- one pool serves all three

-- @lazy
local function offer_stay(queues, visit, tid)
  offered, visit_text, offered_tid = ' ' .. queues .. ' ', visit, tid
end

-- Returns the visit if it may claim work that is opened in this queue, or else nil. It never may while operators have stopped
-- anything, because only claims by doorbells check that.
-- @lazy
local function visit_for(queue, tid)
  if stayed or tid ~= offered_tid or not offered:find(' ' .. queue .. ' ', 1, true) then return end
  for list in (SHARED:find(queue, 1, true) and SHARED or queue):gmatch('%S+') do
    if not nobody_waits(list) or is_waited_for(list) then return end
  end
  return not are_stops() and cjson.decode(visit_text)
end

-- Returns the reply of a script that claimed something, with the replies of the visit's reads. Called when all else is done.
-- @lazy
local function read_with_claim()
  for _, command in ipairs(stayed.reads or {}) do stayed.reply[#stayed.reply + 1] = redis.call(unpack(command)) end
  return stayed.reply
end
