-- token, lease in ms, ttl
if not is_there() then return {'gone'} end
if redis.call('HGET', heart, 'lease:token') ~= ARGV[1] then return {'taken'} end
redis.call('HSET', heart, 'lease:until', string.format('%.0f', now() + tonumber(ARGV[2]) * 1000))
renew(ARGV[3])
return {'ok'}
