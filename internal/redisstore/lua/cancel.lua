-- cancel.lua: takes bookings back.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       then for each booking its ID, 32 hexadecimal digits; the account that is charged;
--         the entry; its slot; and the holder that has it, or ''
-- returns ''
--
-- The ID stays known as cancelled, so that to cancel twice is to cancel once. What was taken back from a holder is
-- known as that, and not cancelled. A holder may be told of a booking after it was cancelled: hold.lua does not
-- note it then.

local now = forwardClock(ARGV[1])
local slots, opened = {}, {}
for i = 2, #ARGV, 5 do
  slots[i] = whole(ARGV[i + 3], 'the slot', 1, 4503599627370496 + 400 * DAY)
  if #ARGV[i] ~= 32 then
    bad = bad or 'ERR ration: the booking\'s ID must have 32 digits'
  elseif ARGV[i + 1] == '' or not parse(ARGV[i + 2] or '') then
    bad = bad or 'ERR ration: the entry is not one of a booking'
  end
end
if bad then
  return redis.error_reply(bad)
end

for i = 2, #ARGV, 5 do
  local record, holder = base .. ':id:' .. ARGV[i], ARGV[i + 4]
  -- The first write may want memory: Redis refuses a script for want of it before that only.
  local first = call('SET', record, 'cancelled', 'PX', REMEMBER, 'NX')
  if holder ~= '' then
    call('ZREM', heldKey(holder), heldMember(ARGV[i], ARGV[i + 1], ARGV[i + 2]))
  end
  if first then
    cancelEntry(opened, ARGV[i + 2], ARGV[i + 1], slots[i], now)
  end
end
writeOpened(opened)
announceFreed(opened)
return ''
