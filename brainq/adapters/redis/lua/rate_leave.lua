--[[
Take a ticket out of the queue of a model's requests, because its turn is over or another model has answered. Those
behind it move up.

KEYS   line order due rule tenants
ARGV   ticket
REPLY  LEFT | NONE
]]
-- @include lib/rates
-- @include lib/permit_queue
return {leave_queue(ticket) and 'LEFT' or 'NONE'}
