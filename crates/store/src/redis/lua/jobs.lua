-- session to begin after or '', place to begin after or '', count: the last place, then the jobs
local after = ARGV[2]
if after == '' then after = ARGV[1] ~= '' and redis.call('ZSCORE', line, ARGV[1]) or '0' end
local found = redis.call('ZRANGEBYSCORE', line, '(' .. after, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[3])
local answer = {'ok', found[#found] or after}
for i = 1, #found, 2 do
  local id = found[i]
  local stage = is_dead(id) and 'dead' or is_held(id) and 'held' or 'waiting'
  table.insert(answer, {redis.call('HGET', jobs, id), stage, redis.call('HGET', holders, id) or '',
    redis.call('HGET', tries, id) or '0', redis.call('HGET', whys, id)})
end
return answer
