--[[
Put input into a turn's mailbox, once for each client_message_id. SEALED means that the turn is over, and the input
becomes a separate turn. FULL means that the mailbox holds `most` inputs or `most_bytes` bytes that no step has read; an
empty mailbox accepts input of any size. `cell_tenant` is the key of the turn's tenant if there are several cells.
Nothing is accepted for a tenant that has moved or is about to move.

KEYS   turn events mailbox receipts moved
ARGV   message_id item most:n most_bytes:n cell_tenant
REPLY  ACCEPTED | FULL inputs:n bytes:n | ALREADY receipt state:TurnState | SEALED state:TurnState | GONE
       | MOVED cell epoch:n | MOVING
]]
-- @include lib/event
local word = cell_tenant ~= '' and redis.call('HGET', moved, cell_tenant)
if word then return word:sub(1, 1) == ' ' and {'MOVING'} or {'MOVED', word:match('^(%S+) (%d+)$')} end
local state = redis.call('HGET', turn, 'state')
if not state then return {'GONE'} end
local known = redis.call('HGET', receipts, message_id)
if known then return {'ALREADY', known, state} end
if state ~= 'queued' and state ~= 'active' and state ~= 'parked' then return {'SEALED', state} end
local waiting, bytes = redis.call('LLEN', mailbox), tonumber(redis.call('HGET', turn, 'mail_bytes') or 0)
if waiting >= most or (waiting > 0 and bytes + #item > most_bytes) then return {'FULL', waiting, bytes} end
redis.call('RPUSH', mailbox, item)
redis.call('HSET', turn, 'mail_bytes', bytes + #item)
redis.call('HSET', receipts, message_id, 'accepted')
emit(events, 'input.accepted', {input = message_id})
return {'ACCEPTED'}
