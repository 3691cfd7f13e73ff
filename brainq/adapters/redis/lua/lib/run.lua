-- Return which Redis this is, and since when. It changes after a restart or a failover. Returns '' if Redis does not
-- report it.
local function redis_run()
  local info = redis.pcall('INFO', 'server', 'replication')
  if type(info) ~= 'string' then return '' end
  local id, replid = info:match('run_id:(%x+)'), info:match('master_replid:(%x+)')
  return id and replid and id .. ' ' .. replid or ''
end
