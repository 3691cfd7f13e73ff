--[[
Leave the queue for a model's places: whose turn is over, or was answered by another model. Those behind come nearer.

KEYS   line order due rule tenants
ARGV   ticket
REPLY  LEFT | NONE
]]
-- @include lib/rates
-- @include lib/permit_queue
return {leave_queue(ticket) and 'LEFT' or 'NONE'}
