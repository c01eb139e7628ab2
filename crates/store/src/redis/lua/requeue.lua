-- session
local id = ARGV[1]
if redis.call('HEXISTS', jobs, id) == 0 then return 0 end
if is_held(id) and not is_dead(id) then return 0 end
for _, what in ipairs({dead, tries, holders}) do redis.call('HDEL', what, id) end
show(id)
return 1
