-- correct.lua: makes bookings count as what their calls have really spent.
--
-- ARGV  1 now, in microseconds; '' for the server's clock
--       then for each booking
--         its ID, 32 hexadecimal digits
--         the account that is charged
--         the entry
--         its slot
--         when the call left; '' for its slot
--         the units of the account, and of each shared one, and behind a comma each those of each meter, in the
--         order of the entry
-- returns of each the slot and the entry that it has now
--
-- What the booking has become is known by its ID: to correct it twice alike is to correct it once. Where all is
-- counted as the entry says, and at the same slot, only the difference is taken back or added. Otherwise the
-- booking is taken back and what was spent is recorded.

local CORRECTED = 'corrected '
local now = forwardClock(ARGV[1])
local opened, freed = {}, {}

-- readSpent reads the units of an entry's parts.
local function readSpent(asked, queue)
  local units, meter, spent = {}, 1, {}
  for n in string.gmatch(asked or '', '[^,]+') do
    units[#units + 1] = whole(n, 'units', 0, COSTLIEST)
  end
  spent[1] = units[1]
  for i, id in ipairs(besideIn(queue)) do
    local metered = unitOf(id)
    meter = meter + (metered and 1 or 0)
    spent[i + 1] = metered and (units[meter] or 0) or units[1]
  end
  return spent
end

-- correct carries out one correction, from a place in ARGV on, and returns the slot and the entry.
local function correct(first)
  local record, accountID, entry = base .. ':id:' .. ARGV[first], ARGV[first + 1], ARGV[first + 2]
  local at, left = tonumber(ARGV[first + 3]), tonumber(ARGV[first + 4])
  local gone = call('GET', record) -- it was cancelled, or taken back from its holder
  if gone and string.sub(gone, 1, #CORRECTED) == CORRECTED then
    at, entry, gone = struct.unpack('>I8', gone, #CORRECTED + 1), string.sub(gone, #CORRECTED + 9), nil
  end
  left = left or at

  local queue, parts = parse(entry)
  local spent, ids, beside = readSpent(ARGV[first + 5], queue), chargedBy(queue, accountID), besideIn(queue)
  local again, counted = gone or left ~= at, {} -- each part as it is counted
  for i, id in ipairs(ids) do
    local part = parts[i]
    if opened[id] == nil and (spent[i] > 0 or part.cost > 0) then
      opened[id] = openOwn(id, now) or false
    end
    counted[i] = opened[id] and not gone and part.cost > 0 and countedAs(opened[id], queue, at, part)
    again = again or opened[id] and spent[i] > 0 and not counted[i]
  end

  local becomes = {}
  for i, id in ipairs(ids) do
    local account, part, units, free = opened[id], counted[i], spent[i], false
    becomes[i] = NOTHING
    if part and (not again or units == 0) then
      becomes[i], free = setUnits(account, queue, at, part, units)
    else
      if part then
        setUnits(account, queue, at, part, 0)
        findEdge(account)
        free = at >= now or units < part.cost
      end
      if account and units > 0 and left > now - account.set.window then
        becomes[i] = addUnits(account, {name = queue, scopes = scopesOf(queue)}, left, units, 'record')
      end
    end
    if free then
      account.ahead = true
      -- What is free of a meter is its account's.
      freed[i > 1 and unitOf(beside[i - 1]) and accountID or id] = account
    end
  end
  entry = queue .. '\0' .. table.concat(becomes)
  call('SET', record, CORRECTED .. struct.pack('>I8', left) .. entry, 'PX', REMEMBER)
  return encode(left) .. named(entry)
end

for i = 2, #ARGV, 6 do
  whole(ARGV[i + 3], 'the slot', 1, 4503599627370496 + 400 * DAY)
  if ARGV[i + 4] ~= '' then
    whole(ARGV[i + 4], 'when it left', 1, 4503599627370496 + 400 * DAY)
  end
  local queue = parse(ARGV[i + 2] or '')
  if #ARGV[i] ~= 32 or ARGV[i + 1] == '' or not queue or not string.find(ARGV[i + 5] or '', '^%d+[%d,]*$') then
    bad = bad or 'ERR ration: a correction has an ID, an account, the entry of a booking, and units'
  else
    readSpent(ARGV[i + 5], queue)
  end
end
if bad then
  return redis.error_reply(bad)
end
local answers = {}
for i = 2, #ARGV, 6 do
  answers[#answers + 1] = correct(i)
end
writeOpened(opened)
announceFreed(freed, 'now')
return table.concat(answers)
