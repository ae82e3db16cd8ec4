-- cancel.lua: hands a booking back.
--
-- ARGV  1 the booking's ID, 32 hexadecimal digits
--       2 the account that is charged
--       3 the entry
--       4 its slot
--       5 the digest of the accounts' index; '' if there is none
--       6 SET:ACCOUNT in that index; '' likewise
-- returns ''
--
-- The ID stays known as cancelled, so that to cancel twice is to cancel once.

local id, account, entry = ARGV[1], ARGV[2], ARGV[3]
local slot = whole(ARGV[4], 'the slot', 1, 4503599627370496 + 400 * DAY)
local index = ARGV[5] ~= '' and base .. ':pool:' .. ARGV[5]
local member = ARGV[6]
if bad then
  return redis.error_reply(bad)
end
if #id ~= 32 then
  return redis.error_reply('ERR ration: the booking\'s ID must have 32 digits')
end
if account == '' or not parse(entry) then
  return redis.error_reply('ERR ration: the entry is not one of a booking')
end
local record = base .. ':id:' .. id
if call('EXISTS', record) == 1 then
  return ''
end
call('SET', record, 'cancelled', 'PX', REMEMBER)
giveBack(entry, account, slot, 1)
local lane = parse(entry)
if index and lane ~= '' then
  index = index .. ':' .. lane
end
if index and call('ZSCORE', index, member) then
  call('ZADD', index, 0, member)
end
return ''
