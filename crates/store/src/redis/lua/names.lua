-- which key: its fields; with their values when 'all' comes next
if not is_there() then return {'gone'} end
local found = redis.call(ARGV[2] == 'all' and 'HGETALL' or 'HKEYS', KEYS[tonumber(ARGV[1])])
table.insert(found, 1, 'ok')
return found
