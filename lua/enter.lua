-- enter.lua: enters what was spent without a booking, or was booked and is no
-- longer in the log.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the request's ID, 32 hexadecimal digits
--       3 the account
--       4 its limits, 'MAX WINDOW ...'
--       5 an instant at which the units spent by all are known; '' if none is
--       6 those units, in the longest window before it
--       7 an entry that is handed back in the same step; '' if none is
--       8 its slot; '' likewise
--       then for each, in the order of slots: slot, cost, and the entry that it
--       had; '' if it had none
-- returns {how many were entered}
--
-- A log only grows at its end. What is older than the last slot is entered there,
-- so it frees later than it should, never earlier.

local now = clock(ARGV[1], offset())
local id, account = ARGV[2], ARGV[3]
local set = limitset(ARGV[4])
local spendings = {}
local known = ARGV[5] ~= '' and whole(ARGV[5], 'an instant', 1, 4503599627370496)
local units = whole(ARGV[6], 'units', 0, 1000000000000)
local instead = ARGV[7]
local there = instead ~= '' and whole(ARGV[8], 'the slot', 1, 4503599627370496 + 400 * DAY)
for i = 9, #ARGV, 3 do
  spendings[#spendings + 1] = {
    slot = whole(ARGV[i], 'a slot', 1, 4503599627370496 + 400 * DAY),
    cost = whole(ARGV[i + 1], 'a cost', 1, 1000000000000),
    entry = ARGV[i + 2],
  }
end
if #id ~= 32 or account == '' or #ARGV % 3 ~= 2 or (instead ~= '' and #instead ~= 12) then
  bad = bad or 'ERR ration: enter takes an ID, an account, its limits, and for each spending three arguments'
end
if bad then
  return redis.error_reply(bad)
end

local record = base .. ':id:' .. id
if call('EXISTS', record) == 1 then
  return {'0'}
end
local log = open(account, now)
local entered = 0
local function add(slot, cost)
  if slot > now - set.window then
    enter(log, math.max(slot, log.last), cost)
    entered = entered + 1
  end
end
-- What is missing of all that was spent by the known instant stands there as one
-- entry: nothing of it left later.
if known then
  local inLog = since(log, known - set.window) - since(log, known)
  if units > inLog then
    add(known, units - inLog)
  end
end
for _, spending in ipairs(spendings) do
  local slot = #spending.entry == 12 and call('ZSCORE', log.key, spending.entry)
  if not (slot and tonumber(slot) == spending.slot) and not (known and spending.slot <= known) then
    add(spending.slot, spending.cost)
  end
end
if instead ~= '' then
  giveBack(log, instead, there)
end
if entered > 0 then
  keep(log, set, now)
  call('HSET', base, 'has:' .. account, text(log.last + set.window))
end
call('SET', record, 'entered', 'PX', REMEMBER)
return {text(entered)}
