-- which key, ttl, then field and value of each
if not is_there() then return {'gone'} end
for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[tonumber(ARGV[1])], ARGV[i], ARGV[i + 1]) end
renew(ARGV[2])
return {'ok'}
