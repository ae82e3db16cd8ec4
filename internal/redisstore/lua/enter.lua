-- enter.lua: enters what was spent without a booking, or was booked and is no
-- longer in the log.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       2 the request's ID, 32 hexadecimal digits
--       3 the account
--       4 the scopes of spendings without an entry, between commas
--       5 an instant at which the units spent by all are known; '' if none is
--       6 those units, in the longest window before it
--       7 an entry that is handed back in the same step; '' if none is
--       8 its slot; '' likewise
--       9 the ID of its booking; '' likewise
--      10 how many zones follow, then each: see readZones
--         its limits: see limitset
--         then for each, in the order of slots: slot, cost, and the entry that it
--         had; '' if it had none
-- returns ''

local now = clock(ARGV[1], readState().offset)
local id, account = ARGV[2], ARGV[3]
local unnamed = ARGV[4]
local spendings = {}
local known = ARGV[5] ~= '' and whole(ARGV[5], 'an instant', 1, 4503599627370496)
local units = whole(ARGV[6], 'units', 0, COSTLIEST)
local instead = ARGV[7]
local there = instead ~= '' and whole(ARGV[8], 'the slot', 1, 4503599627370496 + 400 * DAY)
local first = readZones(11, ARGV[10])
local set = limitset(ARGV[first])
for i = first + 1, #ARGV, 3 do
  spendings[#spendings + 1] = {
    slot = whole(ARGV[i], 'a slot', 1, 4503599627370496 + 400 * DAY),
    cost = whole(ARGV[i + 1], 'a cost', 1, COSTLIEST),
    entry = ARGV[i + 2],
  }
end
if #id ~= 32 or account == '' or (#ARGV - first) % 3 ~= 0 or
  (instead ~= '' and (not parse(instead) or #ARGV[9] ~= 32)) or
  not string.find(unnamed, '^[%w%._,-]*$') then
  bad = bad or 'ERR ration: enter takes an ID, an account, its limits, and for each spending three arguments'
end
if bad then
  return redis.error_reply(bad)
end

local record = base .. ':id:' .. id
if call('EXISTS', record) == 1 then
  return ''
end
local charge = readCharge(account, set, now)
openCharge(charge)
local entered = false
local function add(slot, cost, scopes)
  if slot > now - set.window then
    local lane = {name = scopes ~= '' and scopes .. '~0~' or '', scopes = scopes}
    enterCharge(charge, lane, slot, cost, 'enter')
    entered = true
  end
end
-- What is missing of all that was spent by the known instant stands there as one
-- entry: nothing of it left later.
if known then
  local counted = leftIn(charge, known)
  if units > counted then
    add(known, units - counted, '')
  end
end
for _, spending in ipairs(spendings) do
  local lane, parts = parse(spending.entry)
  local part = lane and parts[partOf(lane, account)]
  local counted = part and counts(charge, lane, spending.slot, part)
  if not counted and not (known and spending.slot <= known) then
    -- Also an entry of another store tells the scopes.
    lane = string.match(spending.entry, '^([^%z]*)%z')
    add(spending.slot, spending.cost, lane and scopesOf(lane) or unnamed)
  end
end
-- What was entered is written before cancelEntry reads the account again.
if entered then
  lowerScores(charge)
  keepNow(charge)
end
if instead ~= '' then
  -- It is handed back once, here or by its cancellation.
  local booked = base .. ':id:' .. ARGV[9]
  if call('SET', booked, 'cancelled', 'PX', REMEMBER, 'NX') then
    local opened = {}
    cancelEntry(opened, instead, account, there, now)
    keepOpened(opened)
  end
end
call('SET', record, 'entered', 'PX', REMEMBER)
return ''
