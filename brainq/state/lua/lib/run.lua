-- Which Redis this is, and since when: another one after a restart or a failover. '' where it does not say.
local function redis_run()
  local said = redis.pcall('INFO', 'server', 'replication')
  if type(said) ~= 'string' then return '' end
  local id, replid = said:match('run_id:(%x+)'), said:match('master_replid:(%x+)')
  return id and replid and id .. ' ' .. replid or ''
end
