-- The inputs in the mailbox that no step has read when a turn ends.
-- @include lib/event
-- Return whether the inputs have text for a model. An input that only sets readiness has none.
local function has_words(inputs)
  for _, input in ipairs(inputs) do
    if cjson.decode(input).text ~= '' then return true end
  end
  return false
end

-- Return whether another step may read them. Uses the names of turn_end.
-- @lazy
local function may_go_on(inputs, cancel)
  if #inputs == 0 or cancel == '1' then return false end
  -- That step would read at least what this one has read and written. If it cannot be paid, or hardly a second is left,
  -- it must not cost the turn its answer.
  if would_pass(budget, 2 * (input + output), 2 * (tonumber(cost) or 0)) then return false end
  local b = read(budget, {'steps_used', 'steps_max', 'deadline'})
  return tonumber(b.steps_used or 0) < tonumber(b.steps_max) and now + 1000 < tonumber(b.deadline) and has_words(inputs)
end

-- Bounce all inputs of the mailbox: SQL has them, and they become separate turns. Returns their ids.
local function bounce_inputs(inputs, events_key, mailbox_key, receipts_key)
  local bounced = {}
  if #inputs > 0 then redis.call('DEL', mailbox_key) end
  for _, input in ipairs(inputs) do
    local id = cjson.decode(input).client_message_id
    redis.call('HSET', receipts_key, id, 'bounced')
    emit(events_key, 'input.bounced', {input = id})
    bounced[#bounced + 1] = id
  end
  return bounced
end
