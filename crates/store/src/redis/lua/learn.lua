-- about, new, old if there was one
local known = redis.call('HGET', KEYS[1], ARGV[1])
if known == ARGV[2] then return 1 end
if known ~= (ARGV[3] or false) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
