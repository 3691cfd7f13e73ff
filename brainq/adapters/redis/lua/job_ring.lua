--[[
Ring in `queue` for a job in SQL of an ended turn: a judge or a finalizer step, named `job`. `bell` is the doorbell's id in its
turn. A job is rung for at most once in `hold_ms`, because its row says whether it is due. FULL means that the queue has 100
doorbells already; a due job is rung for later, when there is room.

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
