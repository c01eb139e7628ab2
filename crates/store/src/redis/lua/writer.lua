-- claim of one who does not count: who writes, or ''
if not is_there() then return {'gone'} end
return {'ok', held(ARGV[1]) or ''}
