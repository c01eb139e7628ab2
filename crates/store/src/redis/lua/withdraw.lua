-- session
if redis.call('HEXISTS', jobs, ARGV[1]) == 0 then return 0 end
forget(ARGV[1])
return 1
