--[[
Ring in `queue` for a job in SQL of an ended turn: a judge or a finalizer step, named `job`. `bell` is the doorbell's id in its
turn. A job is not rung for more often than every `hold_ms`: its row says whether it is due. A queue that nobody empties is not
filled with copies: what is due is rung for when there is a place.

KEYS   rung
ARGV   sid tid queue bell job hold_ms:n
REPLY  RUNG | ALREADY | FULL
]]
-- @include lib/now
-- @include lib/ring
local key = bell_key(queue)
if key ~= '' and redis.call('LLEN', key) >= 100 then return {'FULL'} end
if not redis.call('SET', rung, '1', 'NX', 'PX', hold_ms) then return {'ALREADY'} end
ring(queue, sid, tid, bell, {sid, tid, job}, tid)
return {'RUNG'}
