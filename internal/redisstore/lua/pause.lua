-- pause.lua: keeps an account silent, or all of the budget. A pause only lengthens.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the account; '*' for all; or another name, of a pause that moves no slot
--       3 how long from now, in microseconds
--       4 how far apart slots are that are booked while it lasts, likewise
-- returns numbers: the end of the pause in force, the status's version now, and before

local now = clock(ARGV[1], readState().offset)
local account = ARGV[2]
local length = whole(ARGV[3], 'the pause', 1, 400 * DAY)
local apart = whole(ARGV[4], 'the time between two slots', 0, DAY)
if account == '' then
  bad = bad or 'ERR ration: the account is empty'
end
if bad then
  return redis.error_reply(bad)
end

local before = readState().version
silence(account, now + length, now, apart)
return encode(pausedUntil(account)) .. encode(readState().version) .. encode(before)
