-- claim, channel, session
if not is_there() then return {'gone'} end
local other = held(ARGV[1])
if other then return {'busy', other} end
redis.call('UNLINK', unpack(KEYS))
redis.call('PUBLISH', ARGV[2], ARGV[3] .. ' root 0')
return {'ok'}
