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
-- What workers tell of all units by some instant counts once, whichever worker comes first. The
-- field known has the latest such instant, the units, and the entry of those units which no worker
-- has entered as its own: they stand at that instant, as none of them left later.
local KNOWN = '>I8I8'
local at, all, rest = 0, 0, ''
if charge.fields.known then
  at, all = struct.unpack(KNOWN, charge.fields.known)
  rest = string.sub(charge.fields.known, 17)
end
if at <= now - set.window then
  at, all, rest = 0, 0, ''
end
known = known and known > now - set.window and known
local missing, renewed = {}, known and known > at
for _, spending in ipairs(spendings) do
  local lane, parts = parse(spending.entry)
  local part = lane and parts[partOf(lane, account)]
  if spending.slot > now - set.window and not (part and countedAs(charge, lane, spending.slot, part)) then
    -- Also an entry of another store tells the scopes.
    lane = string.match(spending.entry, '^([^%z]*)%z')
    spending.scopes, spending.part = lane and scopesOf(lane) or unnamed, part
    missing[#missing + 1] = spending
    renewed = renewed or rest ~= '' and spending.slot <= at
  end
end
local function add(slot, cost, scopes)
  local lane = {name = scopes ~= '' and scopes .. '~0~' or '', scopes = scopes}
  return enterCharge(charge, lane, slot, cost, 'enter')
end
if renewed and rest ~= '' then
  local lane, parts = parse('\0' .. rest)
  takeBack(charge, lane, at, parts[1])
end
-- A bucket is known as it was: what it took before is not entered again.
charge.known = math.max(at, known or 0)
for _, spending in ipairs(missing) do
  local part = add(spending.slot, spending.cost, spending.scopes)
  if spending.part then
    noteAgain(charge, spending.slot, spending.part, part)
  end
end
if renewed then
  charge.known = at
  if known and known > at then
    at, all = known, units
  end
  local counted = leftIn(charge, at)
  rest = all > counted and add(at, all - counted, '') or ''
  charge.fields.known, charge.dirty.known = struct.pack(KNOWN, at, all) .. rest, true
end
-- What was entered is written before cancelEntry reads the account again.
if renewed or missing[1] then
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
