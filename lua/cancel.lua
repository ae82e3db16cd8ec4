-- cancel.lua: hands a booking back.
--
-- ARGV  1 the booking's ID, 32 hexadecimal digits
--       2 the account that is charged; '' if the booking's answer was lost
--       3 the entry; '' likewise
--       4 the digest of the accounts' index; '' if there is none
--       5 SET:ACCOUNT in that index; '' likewise
-- returns {'done'}
--
-- The ID stays known as cancelled, so that to cancel twice is to cancel once,
-- and a booking that arrives after its own cancellation is not entered.

local id, account, entry = ARGV[1], ARGV[2], ARGV[3]
local index = ARGV[4] ~= '' and base .. ':pool:' .. ARGV[4]
local member = ARGV[5]
if #id ~= 32 then
  return redis.error_reply('ERR ration: the booking\'s ID must have 32 digits')
end
if entry ~= '' and #entry ~= 12 then
  return redis.error_reply('ERR ration: an entry has 12 bytes')
end

local record = base .. ':id:' .. id
local known = call('GET', record)
if known == 'cancelled' then
  return {'done'}
end
call('SET', record, 'cancelled', 'PX', REMEMBER)
if account == '' then
  if not known then
    return {'done'}
  end
  member, entry = string.match(known, '^%d+ (%S+) (.*)$')
  account = string.match(member, ':(.+)$')
end
giveBack({key = base .. ':log:' .. account, free = base .. ':free:' .. account}, entry)
if call('EXISTS', base .. ':log:' .. account) == 0 then
  -- Empty, not lost.
  call('HDEL', base, 'has:' .. account)
end
if index and call('ZSCORE', index, member) then
  call('ZADD', index, 0, member)
end
return {'done'}
