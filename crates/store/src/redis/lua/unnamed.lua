-- digest, then chunks of it: they go unless the output got its name meanwhile
if not is_there() then return {'gone'} end
if redis.call('HEXISTS', KEYS[3], ARGV[1]) == 1 then return {'ok'} end
for i = 2, #ARGV do redis.call('HDEL', KEYS[3], ARGV[i]) end
return {'ok'}
