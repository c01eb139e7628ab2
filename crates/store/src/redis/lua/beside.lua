-- command, from, to, count
if not is_there() then return {'gone'} end
local found = redis.call(ARGV[1], KEYS[5], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
table.insert(found, 1, 'ok')
return found
