-- Return the tenant of an id: its text up to the first colon. All ids without a colon belong to one tenant.
local function tenant_of(id) return id:match('^[^:]+:') or ':' end
