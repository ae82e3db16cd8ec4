-- layout.lua: how the budget's state and an account's summary are packed. All scripts begin with it.
--
-- Both have numbers of 8 bytes each. They are doubles, which are read faster than integers, and are as
-- exact up to 2^53.
--
-- The field state of KEYS[1] has what every booking is to know of the budget, in one field because a
-- booking pays for each that it reads:
--
--   seen       the latest instant of any booking
--   version    the version of the budget's status
--   lost       when a log was last found missing
--   graceEnds  until when no slot comes after that
--   pausesEnd  when the last pause ends
--   offset     what the server's clock is corrected by
--   card       the version of the budget's card, or 0: card.lua
local STATE = '>ddddddd'

-- The field a:ACCOUNT has the account's summary. It begins with
--
--   ends    up to when the account counts at least; its keys expire a day later
--   total   the number of the next unit: see log.lua
--   edge    the last slot of all
--   last    the slot that no booking of queue '' comes before
--
-- An account that front.lua may book has more: four numbers p1 to p4 that bookings change; max, margin,
-- window, and span, which is how long keys are needed behind a slot; the code of the algorithm, 'F' for
-- FixedWindow or '*' where calls begin its windows; behind their length in one byte the indexes of a pool
-- that the account knows to have a score of it, DIGEST*UNITS*UNITS*; behind their length in two the limits
-- in force that such a booking is told, or nothing if its own are; and ARGV[3] of a booking that
-- front.lua answers, but for an index. The two lengths come first.
--
-- p1 to p4 are for the window or cell of the last slot of all, and hold in place of what the account's hash
-- has of that:
--
--   L  room, mask, ordered          while total is no more than room no slot is put off
--                                   that is behind all others; the sets of the log; the
--                                   units from that number on are all in it, in the order
--                                   of their slots; max is the one limit's, or 0 of several
--   S  room, next, at, clean        likewise; the number of its next unit; the slot of
--                                   its last entry; 1 if nothing is beside the stream
--   F  key, units
--   *  key, units, first
--   W  key, units, limit, older     limit is N<, or 2^53; older the units of the window
--                                   before
--   U  begin, units, ends           max is the room for all units of the cell
--   G  at, part, burst
local SUMMARY, SUMMARY_BYTES = '>dddd', 32
local FRONT = '>ddddddddc1BI2'
-- The whole up to the digest, and the part that bookings change.
local WHOLE, WHOLE_BYTES = '>ddddddddddddc1BI2', 100
local CHANGED, CHANGED_BYTES = '>ddddddddc0', 64
