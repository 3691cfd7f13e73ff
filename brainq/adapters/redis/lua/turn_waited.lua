--[[
End a turn that has waited longer than it may without having begun. NONE means that it may still wait, has begun, or is
over.

KEYS   session waiting turn
ARGV   sid tid text first_step keep_session_ms:n
REPLY  ENDED | NONE
]]
-- @include lib/fields
-- @include lib/end_queued
-- @include lib/let_go
local t = read(turn, {'state', 'created_at', 'max_wait_ms'})
local most_ms = tonumber(t.max_wait_ms or '')
if t.state ~= 'queued' or not most_ms or now < t.created_at + most_ms then return {'NONE'} end
end_queued(waiting, turn, sid, tid, 'timed_out', 'waited', text, '', first_step)
let_session_go(session, waiting, sid, keep_session_ms)
return {'ENDED'}
