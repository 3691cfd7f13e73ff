-- A tenant is what its sessions' ids begin with, up to the first colon; ids without one are one tenant.
local function tenant_of(id) return id:match('^[^:]+:') or ':' end
