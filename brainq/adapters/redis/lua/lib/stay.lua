-- The thread that runs a script may continue with the work that the script opens. The script then claims this work for the thread
-- instead of ringing for it, at most once, and only for the script's own turn. `queues` (words) are the queues that the thread's
-- process serves: `QUEUE:NUMBER` if the thread may take their work and so many other threads of the pool are free, or `QUEUE:WHY` if
-- it may not. `visit` is JSON: the claim's `owner` and `lease_ms`, the `brains` of the process, what the process has `declared`
-- (lib/builds), and the `reads`, which are commands whose replies come with the claim. No other work is overtaken: a doorbell is rung
-- instead if more work waits in the pool's queues than other threads are free, or if tenants wait for their turn (lib/broker_queue).
-- @include lib/ring
-- @include lib/broker_queue
-- @include lib/refusal
-- @include lib/opened
local offered, visit_text, offered_tid, stayed
local declined  -- why the last work that was opened was not claimed
local SHARED = 'local_write network destructive'  -- one pool serves all three

-- @lazy
local function offer_stay(queues, visit, tid)
  offered, visit_text, offered_tid = ' ' .. queues .. ' ', visit, tid
end

-- @lazy
local function decline(why)
  declined = why
  return false
end

-- Returns the visit if it may claim work that is opened in this queue, or else false. It never may while operators have stopped
-- anything, because only claims by doorbells check that.
-- @lazy
local function visit_for(queue, tid)
  if stayed or tid ~= offered_tid then return false end
  local word = offered:match(' ' .. queue .. ':(%S+)') or 'unserved'
  local free = tonumber(word)
  if not free then return decline(word) end
  for list in (SHARED:find(queue, 1, true) and SHARED or queue):gmatch('%S+') do
    free = is_waited_for(list) and -1 or free - waiting_in(list)
    if free < 0 then return decline('waiting') end
  end
  if are_stops() then return decline('stops') end
  return cjson.decode(visit_text)
end

-- Returns the reply of a script that claimed something, with the replies of the visit's reads. Called when all else is done.
-- @lazy
local function read_with_claim()
  for _, command in ipairs(stayed.reads or {}) do stayed.reply[#stayed.reply + 1] = redis.call(unpack(command)) end
  return stayed.reply
end
