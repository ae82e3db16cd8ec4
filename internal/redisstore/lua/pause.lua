-- pause.lua: keeps an account paused, or all of the budget.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the account; '*' for all; or another name, of a pause that moves no slot
--       3 how long from now, in microseconds
--       4 how long a step of the slow start behind it takes, likewise, and 2^37 times its kind, and 2^39 times how
--         often in a row it is; of a quarantine twice how often the token was quarantined, and 1 more while
--         it is probed
--       5 the end of the pause that this one replaces, if it still ends then; '' for none: it
--         then only lengthens
--       6 what people are told of its cause; may be ''
-- returns numbers: the end of the pause in force, the status's version now, and before

local now = clock(ARGV[1], readState().offset)
local accountID = ARGV[2]
local length = whole(ARGV[3], 'the pause', ARGV[5] == '' and 1 or 0, 400 * DAY)
local apart = whole(ARGV[4], 'what is beside the pause', 0, 1001 * 549755813888)
local replaced = ARGV[5] ~= '' and whole(ARGV[5], 'the end of another pause', 1, 4503599627370496 + 400 * DAY)
if accountID == '' then
  bad = bad or 'ERR ration: the account is empty'
end
if bad then
  return redis.error_reply(bad)
end

local before = readState().version
if not replaced then
  extendPause(accountID, now + length, now, apart, ARGV[6])
elseif pausedUntil(accountID) == replaced then
  noteChange(accountID, now + length, now, apart, ARGV[6])
end
return encode(pausedUntil(accountID)) .. encode(readState().version) .. encode(before)
