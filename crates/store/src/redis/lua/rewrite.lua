-- token, ttl, then field and value of each line or header
if not is_there() then return {'gone'} end
if redis.call('HGET', heart, 'lease:token') ~= ARGV[1] then return {'taken'} end
for i = 3, #ARGV, 2 do redis.call('HSET', heart, ARGV[i], ARGV[i + 1]) end
renew(ARGV[2])
return {'ok'}
