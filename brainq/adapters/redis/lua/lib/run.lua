-- Which Redis this is, and since when: another one after a restart or a failover. '' where it does not say.
local function redis_run()
  local info = redis.pcall('INFO', 'server', 'replication')
  if type(info) ~= 'string' then return '' end
  local id, replid = info:match('run_id:(%x+)'), info:match('master_replid:(%x+)')
  return id and replid and id .. ' ' .. replid or ''
end
