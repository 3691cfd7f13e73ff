-- Decide whether the lease of a running call may be renewed. Returns 'lost' if it belongs to another owner, or 'closed'
-- if the turn no longer wants the call; otherwise nil, and the call's lanes. Uses the script's names: turn trace owner
-- call attempt lease_ms, and lib/now.
-- @include lib/fields
-- @include lib/read_call
local function look_at_call()
  local c = read_call(call, {'status', 'owner', 'attempt', 'lanes'})
  if c.owner ~= owner or tonumber(c.attempt) ~= attempt then return 'lost' end
  local t = read(turn, {'state', 'cancel'})
  if t.state ~= 'active' or t.cancel == '1' then return 'closed' end
  if c.status ~= 'running' then return 'lost' end
  return nil, c.lanes
end

-- Renew the lease, and set these further fields and values.
local function renew_call(...) redis.call('HSET', trace, call .. ':lease', now + lease_ms, ...) end
