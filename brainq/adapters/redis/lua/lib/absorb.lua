-- Move the messages of a step's calls into the history, in the model's order, once every call has its message. The
-- calls of step 0 (memory and the context pack) answer no reply of the model, so their messages stay in the trace for
-- the preparer. Results may be long, so only sixteen are held at a time. Uses the script's names: turn trace history.
-- @include lib/fields
-- @include lib/call
-- @include lib/settled
-- @lazy
local function absorb(step, calls, isolated)
  local list = isolated == '1' and turn .. ':history' or history
  for first = 1, #calls, 16 do
    local some = {unpack(calls, first, math.min(first + 15, #calls))}
    local fields = {}
    if step > 0 then
      for i, call in ipairs(some) do fields[i] = call .. ':msg' end
      push(list, redis.call('HMGET', trace, unpack(fields)))
    end
    forget_work(some, fields)
  end
end
